import { Context } from '@temporalio/activity';
import { keepArtifacts } from '../../infra/grading/artifacts/keep-artifacts.ts';
import { keepSnapshot } from '../../infra/grading/snapshot/keep-snapshot.ts';
import { homeOf } from '../../infra/sandbox/shell/accounts.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { Snapshot } from '../../workflows/contracts/snapshot.ts';
import type { CaptureSnapshot } from '../interfaces/host.ts';
import { attachAgentSandbox, type Host } from './host.ts';
import { agentCommand } from './start-agent.ts';

/**
 * Stores all that an agent changed in its sandbox, without the files that it was started with and the secrets of its session; or the
 * artifacts alone, for tests that get these.
 */
export async function captureSnapshot(host: Host, input: CaptureSnapshot, signal: AbortSignal): Promise<Snapshot> {
  const secrets = host.secretsOf(sessionId(input.epoch));
  const { gradedIn, artifacts: paths } = await host.tasks.open(input.task);
  const { files } = await agentCommand(host, input);
  const home = homeOf('agent', { root: input.task.user === 'root' });
  const leftOut = [...files.keys()].map((path) => `${home}/${path}`);
  const { snapshotBytes: mostBytes } = host;
  const { attempt } = Context.current().info;
  const sandbox = await attachAgentSandbox(host, input);
  return gradedIn === 'artifacts'
    ? keepArtifacts(sandbox, host.store, { paths, secrets, attempt }, signal)
    : keepSnapshot(sandbox, host.store, { secrets, leftOut, mostBytes, attempt }, signal);
}
