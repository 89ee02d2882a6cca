import { z } from 'zod';
import { bareId, createGoResults, type GoId, qualifiedId } from './go-results.ts';
import { unbuilt } from './go-text.ts';
import { linesOf } from './lines.ts';
import type { LogParser, TestStatus } from './log-parser.ts';

/** The fields read from an event of test2json, or of a failed build, which has its own action. See `go doc test2json`. */
const eventSchema = z.object({
  Action: z.string(),
  Package: z.string().optional(),
  Test: z.string().optional(),
  ImportPath: z.string().optional(),
  FailedBuild: z.string().optional(),
  Output: z.string().optional(),
});
type GoEvent = z.infer<typeof eventSchema>;
const statuses: ReadonlyMap<string, TestStatus> = new Map([
  ['pass', 'PASSED'],
  ['fail', 'FAILED'],
  ['skip', 'SKIPPED'],
]);

/** Reads ids with their package, as go-text.ts does. */
export const goJson: LogParser = createParser(qualifiedId);
export const goJsonNames: LogParser = createParser(bareId);

/** Reads `go test -json`. The output of tests is inside events, so it cannot be mistaken for one. */
function createParser(idOf: GoId): LogParser {
  return {
    parse: (log) => {
      const results = createGoResults(idOf);
      const noted = new Set<string>();
      // Before Go 1.24 only the output of a package says that it was not built.
      const packageEnd = ({ Action, Package = '', FailedBuild, Output = '' }: GoEvent): void => {
        if (Action === 'output' && unbuilt.exec(Output.trimEnd())?.[1] === Package) noted.add(Package);
        else if (Action === 'fail' && (FailedBuild !== undefined || noted.has(Package))) results.broken(Package);
      };
      for (const line of linesOf(log)) {
        const plain = unbuilt.exec(line)?.[1];
        if (plain !== undefined) results.broken(plain);
        const event = eventIn(line);
        if (event === null) continue;
        const { Action: action, Package: packagePath = null, Test: test } = event;
        const status = statuses.get(action);
        if (action === 'build-fail') results.broken(event.ImportPath ?? 'a build failed');
        else if (test === undefined) packageEnd(event);
        else if (action === 'run') results.started(packagePath, test);
        else if (status !== undefined) results.ended(packagePath, test, status);
      }
      return results.finish();
    },
  };
}

function eventIn(line: string): GoEvent | null {
  if (!line.startsWith('{')) return null;
  try {
    return eventSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    // Other programs also print lines that begin with a brace.
    return null;
  }
}
