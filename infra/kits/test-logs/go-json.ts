import { z } from 'zod';
import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { bareId, createGoResults, type GoId, qualifiedId } from './go-results.ts';
import { unbuilt } from './go-text.ts';
import { linesOf } from './lines.ts';
import type { LogParser } from './parsed-tests.ts';

/** The fields that matter of `go doc test2json`, and of a build that failed, which has its own action. */
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

/** Ids with their package, as those of go-text.ts. */
export const goJson: LogParser = createParser(qualifiedId);
export const goJsonNames: LogParser = createParser(bareId);

/** `go test -json`. What tests print is inside of events, so that it can't be taken for one. */
function createParser(idOf: GoId): LogParser {
  return {
    parse: (log) => {
      const results = createGoResults(idOf);
      const noted = new Set<string>();
      /** Before Go 1.24 only the output of a package says that it was not built. */
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
      return results.done();
    },
  };
}

function eventIn(line: string): GoEvent | null {
  if (!line.startsWith('{')) return null;
  try {
    return eventSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    // Other programs print lines of braces too.
    return null;
  }
}
