import type { z } from 'zod';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { BranchRule } from '../../workflows/contracts/trace.ts';
import type { McpServer, McpTransport } from '../harbor/mcp-servers.ts';
import type { FileTree } from '../sandbox/file-tree.ts';
import type { SandboxMount } from '../sandbox/mount.ts';

/** One kind of agent. Adding one takes a file that exports such a spec, and a line in index.ts. */
export interface AgentSpec<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly name: string;
  readonly description: string;
  /** The version of an agent that has no package of its own; absent if it is unknown. */
  readonly version?: string;
  /** Whether the agent calls the model. If not, no trace is opened. */
  readonly usesModel: boolean;
  /** Whether the command gives the agent the host tools of its rollout. If false (default), rollouts with host tools are refused. */
  readonly takesHostTools?: boolean;
  /** Selects the branches of its conversations that are trained; default: all but side calls. */
  readonly branches?: BranchRule;
  /** Whether its sandbox contains the task's reference solution. */
  readonly needsSolution: boolean;
  /** The kinds of sandbox that it can run in, the first one for `auto`; default: any. */
  readonly sandboxes?: readonly SandboxKind[];
  /** The directory below HOME from which the agent reads skills; absent if it reads none. */
  readonly skills?: string;
  /** The ways in which it reaches MCP servers of a task; absent if it calls none. */
  readonly mcpTransports?: readonly McpTransport[];
  /** A file that the image must contain because the agent's program depends on it; default: none. */
  readonly loader?: string;
  /** Programs of which the image must have one, because the agent starts it; default: none. */
  readonly programs?: readonly string[];
  /**
   * The agent's own options: a schema with a description per option. Agents that call the model have the common ones
   * (options.ts) as well.
   */
  readonly options?: Shape;
  /** Prepares, once per host, the host directories that are mounted read-only into the sandbox. */
  runtimes(): Promise<readonly SandboxMount[]>;
  /** Returns the command that runs inside the sandbox under the agent's account. */
  command(context: AgentContext<z.output<z.ZodObject<Shape>>>): AgentCommand;
  /** Maps the command's exit code to the reason why the agent stopped. */
  stopReason(exitCode: number): StopReason;
}

/** The facts of a rollout with which its agent is started. */
export interface AgentStart {
  readonly instruction: string;
  readonly workdir: string;
  /** Base URL of the gateway as seen from the sandbox, without a trailing slash; null without a model. */
  readonly baseUrl: string | null;
  readonly secret: string | null;
  readonly maxTurns: number;
  /** The names of the host tools, which the gateway serves by MCP at `hostToolsUrl`; default: none. */
  readonly hostTools?: readonly string[];
  /** The MCP servers of the task, in the sandbox; default: none. */
  readonly mcpServers?: readonly McpServer[];
  /** Context length of the model in tokens; null if unknown. With it an agent can compact its conversation in time. */
  readonly contextLength?: number | null;
}

export interface AgentContext<Options = Readonly<Record<string, unknown>>> extends AgentStart {
  /** The options as the agent's schema has read them. */
  readonly options: Options;
}

/** An agent with its options applied, as a rollout uses it. */
export interface Agent extends Omit<AgentSpec, 'command'> {
  command(start: AgentStart): AgentCommand;
}

export interface AgentCommand {
  readonly argv: readonly string[];
  /** May hold secrets: they reach the agent's own process only, never an argv, an image or a log. */
  readonly env: Readonly<Record<string, string>>;
  /** Files written to the agent's HOME before it starts, owned by its account. */
  readonly files: FileTree;
}
