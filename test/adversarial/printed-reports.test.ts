import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exposureOf } from '../../infra/grading/exposure.ts';
import { judgeLog } from '../../infra/grading/resolution/judge-log.ts';
import { type LogParserName, logParsers } from '../../infra/kits/test-logs/index.ts';
import { runs } from '../helpers/tasks/forged-runs.ts';

const goText = ['=== RUN   A', '--- PASS: A (0.00s)', 'PASS', 'ok  \tp\t0.01s'];
const goJson = ['run', 'pass'].map((Action) => JSON.stringify({ Action, Package: 'p', Test: 'A' }));
/** Reports with a pass, for runners whose recorded runs have none. */
const others: Readonly<Partial<Record<LogParserName, readonly string[]>>> = {
  'go-text': goText,
  'go-names': goText,
  'go-parents': goText,
  'go-json': goJson,
  'go-json-names': goJson,
  'maven-builds': ['+ mvn test -Dtest=x.PassesTest#passes', '[INFO] BUILD SUCCESS'],
};

/** Runners whose tests are programs of their own. */
const separate: readonly LogParserName[] = ['automake', 'bats', 'ctest', 'ctest-lower', 'redis', 'redis-plain-titles'];

describe('a report that the code under test prints before it ends the runner', () => {
  for (const [name, [first]] of Object.entries(runs) as [LogParserName, (typeof runs)[LogParserName]][]) {
    it(`is accepted for ${name}, and the verdict names the exposure`, () => {
      const report = (others[name] ?? first?.written ?? []).join('\n');
      const passed = [...logParsers[name].parse(report).tests].filter(([, status]) => status === 'PASSED');
      const failToPass = passed.map(([id]) => id);
      assert.ok(failToPass.length > 0, report);
      const log = `>>>>> Start Test Output n\n${report}\n>>>>> End Test Output n 0\n`;
      const required = { failToPass, passToPass: [], rule: 'pass-and-fail' as const };
      const { resolution } = judgeLog(log, { ...required, logParser: name, nonce: 'n', exitCode: 0 });
      assert.equal(resolution.status, 'resolved', resolution.reason);
      assert.equal(exposureOf(name), separate.includes(name) ? 'same-account' : 'in-process');
    });
  }
});
