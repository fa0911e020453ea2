// Ask the service. A newer question replaces an older one of its kind.

let token = sessionStorage.getItem("expecta-token");
let askForToken = null;

/** Say how to get a token from the person, for a service that wants one. */
export function onToken(ask) {
  askForToken = ask;
}

export function hasToken() {
  return token !== null;
}

/** What the service answered instead of an answer: problem details. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail || document.title || "no answer");
    Object.assign(this, { document, status: document.status });
  }
}

/** Ask, and return the document of the answer, or its text; a refusal is a Problem. */
export async function ask(path, body = undefined, signal = undefined) {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST", headers, signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ status: 0, detail: "The service does not answer. Is it still running?" });
  }
  if (response.status === 401 && askForToken !== null) {
    token = await askForToken(token !== null);
    sessionStorage.setItem("expecta-token", token);
    return ask(path, body, signal);
  }
  if (response.ok) return response.headers.get("Content-Type")?.startsWith("text/") ? response.text() : response.json();
  let document = { status: response.status, detail: response.statusText };
  try {
    document = await response.json();
  } catch { /* what it sent is no JSON: the status tells */ }
  throw new Problem(document);
}

export function modelPath(model, ...parts) {
  return ["/models", encodeURIComponent(model), ...parts].join("/");
}

const RETRIES = 5;

/**
 * One question at a time, the newest: while an answer is under way newer questions wait, and only
 * the last of them is asked. What the service has begun it finishes, so that a question which is
 * cancelled and asked anew would wait for itself: only `cancel`, of a view that closes, lets go.
 */
export class Newest {
  constructor(send, show, fail) {
    Object.assign(this, { send, show, fail, running: null, waiting: undefined });
  }

  ask(question) {
    this.waiting = { question };
    if (this.running === null) this.next();
  }

  cancel() {
    this.waiting = undefined;
    this.running?.abort();
  }

  async next() {
    const { question } = this.waiting;
    this.waiting = undefined;
    const running = new AbortController();
    this.running = running;
    try {
      const answer = await this.patiently(question, running.signal);
      if (!running.signal.aborted) this.show(answer, question);
    } catch (error) {
      if (error.name !== "AbortError" && this.waiting === undefined) this.fail(error, question);
    } finally {
      this.running = null;
      if (this.waiting !== undefined) this.next();
    }
  }

  async patiently(question, signal) {
    for (let tried = 0; ; tried += 1) {
      try {
        return await this.send(question, signal);
      } catch (error) {
        if (!(error instanceof Problem) || ![429, 503].includes(error.status) || tried === RETRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 300 * (tried + 1)));
        if (signal.aborted) throw error;
      }
    }
  }
}
