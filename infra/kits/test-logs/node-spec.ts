import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { linesOf, withoutDuration } from './lines.ts';
import { createTally, type LogParser } from './parsed-tests.ts';
import { createTitlePath, placed } from './title-path.ts';

const marks: Readonly<Record<string, TestStatus>> = { '✔': 'PASSED', '✖': 'FAILED', '﹣': 'SKIPPED', '⚠': 'XFAIL' };
const entry = /^( *)([✔✖﹣⚠▶]) (.+)$/s;

/**
 * node:test's `spec` report. Ids are those of its TAP report. After the totals the failures are told again, without their
 * suites: passes end there.
 */
export const nodeSpec: LogParser = {
  parse: (log) => {
    const tally = createTally();
    const path = createTitlePath();
    let inTree = true;
    for (const line of linesOf(log)) {
      if (line.startsWith('✖ failing tests:')) {
        inTree = false;
        continue;
      }
      const [, indent, mark = '', rest = ''] = entry.exec(line) ?? [];
      if (indent === undefined) continue;
      const [, plain = rest, directive] = /^(.*) # (SKIP|TODO)\b/s.exec(rest) ?? [];
      const title = withoutDuration(plain);
      const status = statusOf(mark, directive);
      const found = inTree ? tally.record : tally.against;
      if (status === undefined) path.open(indent.length, title);
      else found(...placed(path.to(indent.length, title), title, status));
    }
    return tally.done();
  },
};

function statusOf(mark: string, directive: string | undefined): TestStatus | undefined {
  if (directive === 'SKIP') return 'SKIPPED';
  if (directive === 'TODO' && mark !== '▶') return mark === '✔' ? 'XPASS' : 'XFAIL';
  return marks[mark];
}
