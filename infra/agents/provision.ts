import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { GradedTask } from '../grading/task.ts';
import { requireOwnWorkdir } from '../grading/tests/own-workdir.ts';
import { initialDiskMb, prepareWorkspace, workspaceFiles } from '../grading/workspace/prepare-workspace.ts';
import type { HarborTask } from '../harbor/harbor-task.ts';
import { ensureSandbox } from '../sandbox/ensure-sandbox.ts';
import type { ReportImage } from '../sandbox/image.ts';
import type { Sandbox, SandboxKind, SandboxProvider } from '../sandbox/sandbox.ts';
import { type SandboxOwner, type SandboxRequest, sandboxSpec } from '../sandbox/sandbox-request.ts';
import type { AgentSpec } from './agent.ts';
import type { ImageCheck } from './image-check.ts';
import { requireMcpServers } from './mcp-servers.ts';
import { placeSkills, requireSkills } from './skills.ts';

export interface AgentProvisioning {
  readonly owner: SandboxOwner;
  readonly provider: SandboxProvider;
  readonly spec: AgentSpec;
  readonly request: Omit<SandboxRequest, 'files'>;
  readonly files: GradedTask & Pick<HarborTask, 'skillsDirectory' | 'mcpServers'>;
  /** Whether an earlier activity attempt may have left the sandbox half set up. */
  readonly retried: boolean;
  readonly requireOfImage: ImageCheck;
  readonly report: ReportImage;
}

export interface ProvisionedSandbox {
  readonly sandbox: string;
  readonly kind: SandboxKind;
  readonly baseCommit: string;
  /** MB on the sandbox's disk before the agent starts. */
  readonly diskBeforeMb: number;
  /** Whether the tests get everything that the agent changed in its sandbox. */
  readonly carriesChanges: boolean;
}

/** Makes the sandbox of an agent, with the task's workspace at its base commit. Throws UnsupportedTask and SetupFailed. */
export async function provisionAgent(
  { owner, provider, spec, request, files, retried, requireOfImage, report }: AgentProvisioning,
  signal: AbortSignal,
): Promise<ProvisionedSandbox> {
  const { name, image, task } = request;
  if (files.keepProcesses && !provider.sharesProcesses) {
    throw new TemperFailure(
      'UnsupportedTask',
      `the tests of task ${task.id} connect to processes that the agent started (keep_processes), which end with their command in ${provider.kind} sandboxes; use a host with Docker`,
    );
  }
  if (files.entrypoint !== null && !provider.sharesProcesses) {
    throw new TemperFailure(
      'UnsupportedTask',
      `the image of task ${task.id} starts ${files.entrypoint[0]} (entry point), which ${provider.kind} sandboxes cannot keep running for other commands; use a host with Docker`,
    );
  }
  if (files.gradedIn === 'snapshot' && !provider.carriesChanges) {
    throw new TemperFailure(
      'UnsupportedTask',
      `the tests of task ${task.id} get all that the agent changed in its sandbox (grading.sandbox = "snapshot"), which temper cannot carry out of ${provider.kind} sandboxes; use Docker, Kubernetes or local sandboxes, or set it to "fresh"`,
    );
  }
  if (files.testImage !== null && provider.programs === 'host') {
    throw new TemperFailure(
      'UnsupportedTask',
      `the tests of task ${task.id} are in an image of their own (verifier.environment), which ${provider.kind} sandboxes cannot use; use Docker or a remote kind of sandbox`,
    );
  }
  const skills = { task: task.id, skillsDirectory: files.skillsDirectory };
  requireSkills(spec, skills);
  requireMcpServers(spec, { task: task.id, mcpServers: files.mcpServers });
  // An interrupted set-up might fail when it is repeated, or give another base commit: start from an empty sandbox.
  if (retried) await provider.remove(name);
  const asked = sandboxSpec(owner, { ...request, files: workspaceFiles(files, task.workdir) });
  const sandbox = await ensureSandbox(provider, { ...asked, report }, signal);
  await requireOfImage({ sandbox, provider, spec, image }, signal);
  if (files.ownWorkdir) await requireOwnWorkdir(sandbox, task, signal);
  const { baseCommit } = await prepareWorkspace(
    sandbox,
    files,
    { workdir: task.workdir, placed: true, keep: true },
    signal,
  );
  if (files.testImage !== null) await makeArtifactDirectory(sandbox, files.artifacts, signal);
  await placeSkills(sandbox, spec, skills, signal);
  if (spec.needsSolution) {
    if (files.solution.size === 0) {
      throw new TemperFailure(
        'UnsupportedTask',
        `agent ${spec.name} needs solution/solve.sh, and task ${task.id} has none; use another agent`,
      );
    }
    await sandbox.putFiles({ tree: files.solution, at: '/solution', owner: 'agent' }, signal);
  }
  const carriesChanges = wantsSnapshot(files) && provider.carriesChanges;
  if (carriesChanges) await sandbox.changes?.note(signal);
  const diskBeforeMb = await initialDiskMb(sandbox, files.workspace, task.diskMb);
  return { sandbox: sandbox.name, kind: provider.kind, baseCommit, diskBeforeMb, carriesChanges };
}

const wantsSnapshot = ({ gradedIn }: Pick<GradedTask, 'gradedIn'>): boolean =>
  gradedIn === 'snapshot' || gradedIn === 'snapshot-or-fresh';

/** Makes the directory of Harbor's own convention, in which the agent may leave artifacts. */
async function makeArtifactDirectory(sandbox: Sandbox, paths: readonly string[], signal: AbortSignal): Promise<void> {
  const [at] = paths;
  if (at !== undefined) await sandbox.putFiles({ tree: new Map(), at, owner: 'agent' }, signal);
}
