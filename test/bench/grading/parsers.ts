import { type LogParserName, logParsers } from '../../../infra/kits/test-logs/index.ts';
import { sampleLog } from './logs.ts';

export interface ParserSpeed {
  readonly parser: string;
  readonly mbPerSecond: number;
}

/** As long as the longest that a sandbox keeps, about. */
const logBytes = 16 * 1024 * 1024;
const rounds = 3;

/** Each parser over a log of its own form, the best of some rounds. Throws where one does not find the tests: it would measure nothing. */
export function measureParsers(progress: (parser: string) => void): readonly ParserSpeed[] {
  const names = Object.keys(logParsers) as LogParserName[];
  return names.map((parser) => {
    progress(parser);
    const { text, tests } = sampleLog(parser, logBytes);
    let bestMs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      const { tests: found } = logParsers[parser].parse(text);
      bestMs = Math.min(bestMs, performance.now() - startedAt);
      const passed = [...found.values()].filter((status) => status === 'PASSED').length;
      if (passed < tests) throw new Error(`${parser}: expected ${tests} tests that passed, found ${passed}`);
    }
    return { parser, mbPerSecond: Buffer.byteLength(text) / 1e6 / (bestMs / 1000) };
  });
}
