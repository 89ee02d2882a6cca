import { fromMark, linesOf, withoutDuration } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';
import { createTitlePath, positioned } from './title-path.ts';

const marks: Readonly<Record<string, TestStatus>> = { '✔': 'PASSED', '✖': 'FAILED', '﹣': 'SKIPPED', '⚠': 'XFAIL' };
const entry = /^( *)([✔✖﹣⚠▶]) (.+)$/s;
const anyMark = /[✔✖﹣⚠▶] /;
/** A result after printed text, which has a time. */
const timed = /\(\d+(?:\.\d+)?ms\)(?: # .*)?$/s;

/**
 * Reads node:test's `spec` report. Ids are those of its TAP report. After the totals it repeats the failures without their
 * suites: no passes are read from there on.
 */
export const nodeSpec: LogParser = {
  parse: (log) => {
    const collector = createResultCollector();
    const path = createTitlePath();
    let inTree = true;
    for (const line of linesOf(log)) {
      if (line.startsWith('✖ failing tests:')) {
        inTree = false;
        continue;
      }
      const [, indent, mark = '', rest = ''] = entry.exec(line) ?? afterText(line) ?? [];
      if (indent === undefined) continue;
      const [, plain = rest, directive] = /^(.*) # (SKIP|TODO)\b/s.exec(rest) ?? [];
      const title = withoutDuration(plain);
      const status = statusOf(mark, directive);
      const found = inTree ? collector.record : collector.recordOutside;
      if (status === undefined) path.open(indent.length, title);
      else found(...positioned(path.to(indent.length, title), title, status));
    }
    return collector.finish();
  },
};

/** Reads a suite or a result that stands after text without a line end. */
function afterText(line: string): RegExpExecArray | null {
  const found = entry.exec(fromMark(line, anyMark));
  return found !== null && (found[2] === '▶' || timed.test(found[3] ?? '')) ? found : null;
}

function statusOf(mark: string, directive: string | undefined): TestStatus | undefined {
  if (directive === 'SKIP') return 'SKIPPED';
  if (directive === 'TODO' && mark !== '▶') return mark === '✔' ? 'XPASS' : 'XFAIL';
  return marks[mark];
}
