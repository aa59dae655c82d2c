// Prints for each file of JUnit cases how many cases each reader counts, and how many of them as failed.
import { convertJUnitToCTRFReport } from "junit-to-ctrf";
import parser from "test-results-parser";

const found = {};
for (const file of process.argv.slice(2)) {
  const { summary, tests } = (await convertJUnitToCTRFReport(file)).results;
  const parsed = parser.parse({ type: "junit", files: [file] });
  found[file] = {
    "junit-to-ctrf": {
      cases: summary.tests,
      failed: summary.failed + summary.other,
      names: new Set(tests.map((test) => test.name)).size,
    },
    "test-results-parser": {
      cases: parsed.total + parsed.skipped, // its total is without them
      failed: parsed.failed + parsed.errors,
      names: new Set(parsed.suites.flatMap((suite) => suite.cases.map((each) => each.name))).size,
    },
  };
}
console.log(JSON.stringify(found));
