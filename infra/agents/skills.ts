import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AgentSpec } from './agent.ts';

interface TaskSkills {
  readonly task: string;
  /** The directory in the sandbox with the task's skills, or null. */
  readonly skillsDirectory: string | null;
}

/** Throws UnsupportedTask for a task with skills and an agent that calls the model and reads none. */
export function requireSkills(
  { name, usesModel, skills }: Pick<AgentSpec, 'name' | 'usesModel' | 'skills'>,
  { task, skillsDirectory }: TaskSkills,
): void {
  if (skillsDirectory === null || skills !== undefined || !usesModel) return;
  throw new TemperFailure(
    'UnsupportedTask',
    `task ${task} has skills (environment.skills_dir), which agent ${name} does not read; use another agent, such as claude-code`,
  );
}

const copy = '[ -d "$1" ] || exit 3; mkdir -p "$HOME/$2" && cp -R "$1/." "$HOME/$2/"';
const limits = { timeoutMs: 60_000, maxOutputBytes: 4096 } as const;

/** Copies the task's skills to where the agent reads them. Throws SetupFailed. */
export async function placeSkills(
  sandbox: Pick<Sandbox, 'exec'>,
  { skills }: Pick<AgentSpec, 'skills'>,
  { skillsDirectory }: TaskSkills,
  signal: AbortSignal,
): Promise<void> {
  if (skillsDirectory === null || skills === undefined) return;
  const argv = ['sh', '-c', copy, 'skills', skillsDirectory, skills] as const;
  const { exitCode, stderr } = await sandbox.exec({ account: 'agent', cwd: '/', argv, env: {}, ...limits }, signal);
  if (exitCode === 0) return;
  const got = exitCode === 3 ? 'none' : `one that cannot be copied: ${String(stderr).trim().slice(-300)}`;
  throw new TemperFailure(
    'SetupFailed',
    `task.toml: environment.skills_dir: expected the directory ${skillsDirectory} in the image, got ${got}`,
  );
}
