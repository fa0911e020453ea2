"""A FastAPI endpoint that returns a constant, to compare a service with."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()
ANSWER = {
    "model": "charges",
    "version": "0123456789abcdef",
    "target": "charges",
    "predictions": [{"prediction": 12627.097807082046, "error": 0.0}],
    "exact": True,
    "exactness": "Exact, given the learned density: mean, standard deviation and share. " * 3,
    "remarks": [],
}


@app.post("/constant")
@app.get("/constant")
async def constant():
    return ANSWER


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), log_level="warning", access_log=False)
