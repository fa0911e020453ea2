// Order of what the search finds: pages that help before pages that list, and pages for users before
// those for developers.
var Scorer = {
  score: (result) => {
    const [page, , , , points] = result;
    if (page.startsWith("start/") || page.startsWith("gallery/plot_")) return 2 * points;
    if (page.startsWith("guides/")) return 1.5 * points;
    if (page.startsWith("reference/generated/")) return 0.6 * points;
    if (page === "architecture" || page === "results" || page === "reference/changelog") return 0.4 * points;
    return points;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
