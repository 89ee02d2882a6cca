import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { describeIssue } from '../../../../workflows/contracts/input.ts';
import { regradeStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type RegradeRequest, type RegradeStatus, regradeInput } from '../../../../workflows/contracts/regrade.ts';
import { defined } from '../../follow/input-file.ts';
import { type StartOptions, startAndFollow } from '../../follow/start-and-follow.ts';
import { UsageError } from '../../text/errors.ts';
import { print, printJson } from '../../text/output.ts';
import { findRegradeReport } from './find-report.ts';
import { packRepaired } from './pack-repaired.ts';
import { regradeText, statesText } from './regrade-text.ts';

export interface RegradeOptions extends StartOptions {
  readonly run?: string;
  readonly grader?: string;
  readonly tasks?: string;
  readonly repeat?: number;
  readonly concurrency?: number;
  readonly reuseVerdicts?: true;
}

/** Starts a regrade and waits for its result. The first Ctrl-C cancels it and waits for its clean-up. */
export async function runRegrade(rollouts: readonly string[], options: RegradeOptions): Promise<void> {
  const asked = requestOf(rollouts, options);
  const { startRegrade } = await import('../../follow/start-workflow.ts');
  await startAndFollow(options, {
    noun: 'regrade',
    prefix: 'regrade',
    children: 'evaluations',
    cleanedUp: 'its sandboxes are gone',
    async start(stack, id) {
      const { tasks } = options;
      const packed = tasks === undefined ? {} : { tasks: await packRepaired(tasks, stack) };
      return startRegrade(stack.client, id, { ...asked, ...packed });
    },
    async look(handle) {
      const status = await handle.query(regradeStatusQuery);
      return { line: progressText(status), pausedBecause: status.pausedBecause };
    },
    async report(stack, id) {
      const report = await findRegradeReport(stack, id);
      if (report === null) return;
      const { result, rows } = report;
      if (options.json) printJson({ id, ...result, rows });
      else print(showHidden(regradeText(report)));
    },
  });
}

/** Checked before anything starts. */
function requestOf(named: readonly string[], options: RegradeOptions): RegradeRequest {
  const { run, grader, repeat, concurrency, reuseVerdicts } = options;
  const rollouts = named.length === 0 ? undefined : [...named];
  const request: RegradeRequest = defined({ run, rollouts, grader, repeat, concurrency, reuseVerdicts });
  const parsed = regradeInput.safeParse(request);
  if (parsed.success) return request;
  throw new UsageError(`regrade: ${parsed.error.issues.map((issue) => describeIssue(issue, request)).join('; ')}`);
}

export function progressText(status: RegradeStatus): string {
  const { phase, ended, rollouts, inFlight, states } = status;
  return [phase, `${ended} of ${rollouts} rollouts graded again`, `${inFlight} in flight`, ...statesText(states)].join(
    ' · ',
  );
}
