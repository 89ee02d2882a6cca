import { type LogParserName, logParsers } from '../../../infra/kits/test-logs/index.ts';
import { sampleLog } from './logs.ts';

export interface ParserSpeed {
  readonly parser: string;
  readonly mbPerSecond: number;
}

/** The approximate size of the longest log that a sandbox keeps. */
const logBytes = 16 * 1024 * 1024;
const rounds = 3;

/**
 * Measures each parser on a log of its runner, in the best of several rounds. Throws if a parser does not find the tests,
 * since the figure would then be meaningless.
 */
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
