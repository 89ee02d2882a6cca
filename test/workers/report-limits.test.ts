import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createLimitReport } from '../../workers/report-limits.ts';

it('reports limits that the daemon may not set, once for each kind', () => {
  const lines: (readonly [fields: unknown, text: string])[] = [];
  const report = createLimitReport();
  report.logTo({ warn: (fields: unknown, text: string) => void lines.push([fields, text]) });
  const nofile = { name: 'nofile', soft: -1, hard: -1 } as const;
  const core = { name: 'core', soft: -1, hard: -1 } as const;
  report.onDroppedLimits({ sandbox: 'a', service: null, ulimits: [nofile] });
  report.onDroppedLimits({ sandbox: 'b', service: 'db', ulimits: [nofile] });
  report.onDroppedLimits({ sandbox: 'c', service: 'db', ulimits: [nofile, core] });
  assert.deepEqual(
    lines.map(([fields, text]) => [
      fields,
      /\(ulimits: (\w+)\), so its containers keep the daemon's own/.exec(text)?.[1],
    ]),
    [
      [{ sandbox: 'a', service: null, ulimits: [nofile] }, 'nofile'],
      [{ sandbox: 'c', service: 'db', ulimits: [nofile, core] }, 'core'],
    ],
  );
});
