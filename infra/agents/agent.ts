import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { BranchRule } from '../../workflows/contracts/trace.ts';
import type { FileTree } from '../sandbox/files.ts';
import type { SandboxKind, SandboxMount } from '../sandbox/sandbox.ts';

/** One kind of agent. Adding one takes a file that exports such a spec, and a line in index.ts. */
export interface AgentSpec {
  readonly name: string;
  readonly description: string;
  /** Whether the agent calls the model. If not, no trace is opened. */
  readonly usesModel: boolean;
  /** Selects the branches of its conversations that are trained; default: all but side calls. */
  readonly branches?: BranchRule;
  /** Whether its sandbox contains the task's reference solution. */
  readonly needsSolution: boolean;
  /** The kinds of sandbox that it can run in, the first one for `auto`; default: any. */
  readonly sandboxes?: readonly SandboxKind[];
  /** A file that the image must contain because the agent's program depends on it; default: none. */
  readonly loader?: string;
  /**
   * Returns the same agent with options, as in `claude-code?subAgents=off`. Absent for an agent without options. Throws
   * TemperFailure UnknownAgent if an option is invalid.
   */
  withOptions?(options: Readonly<Record<string, string>>): AgentSpec;
  /** Prepares, once per host, the host directories that are mounted read-only into the sandbox. */
  runtimes(): Promise<readonly SandboxMount[]>;
  /** Returns the command that runs inside the sandbox under the agent's account. */
  command(context: AgentContext): AgentCommand;
  /** Maps the command's exit code to the reason why the agent stopped. */
  stopReason(exitCode: number): StopReason;
}

export interface AgentContext {
  readonly instruction: string;
  readonly workdir: string;
  /** Base URL of the gateway as seen from the sandbox, without a trailing slash; null without a model. */
  readonly baseUrl: string | null;
  readonly secret: string | null;
  readonly maxTurns: number;
  /** Context length of the model in tokens; null if unknown. With it an agent can compact its conversation in time. */
  readonly contextLength?: number | null;
}

export interface AgentCommand {
  readonly argv: readonly string[];
  /** May hold secrets: they reach the agent's own process only, never an argv, an image or a log. */
  readonly env: Readonly<Record<string, string>>;
  /** Files written to the agent's HOME before it starts, owned by its account. */
  readonly files: FileTree;
}
