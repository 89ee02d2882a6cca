import { z } from 'zod';
import type { McpServer } from '../harbor/mcp-servers.ts';
import type { AgentSpec, AgentStart } from './agent.ts';
import {
  bunLoader,
  bunSandboxes,
  type CliDependencies,
  homeFiles,
  modelName,
  requireGateway,
  secretVariable,
  withInstruction,
} from './cli.ts';
import { hostToolServer, hostToolsUrl, hostToolTimeoutSec } from './host-tools.ts';
import { extraArguments, onOrOff, subAgents, toolNames, toolTimeout } from './options.ts';
import { packageFile } from './packages.ts';

const program = packageFile(`@anthropic-ai/claude-code-linux-${process.arch}/claude`);
/** The agent runs unattended and the sandbox confines it, so permission checks are off. The log is one line of JSON per event. */
const flags = ['--print', '--permission-mode', 'bypassPermissions', '--output-format', 'stream-json', '--verbose'];

const options = {
  subAgents,
  tools: toolNames
    .optional()
    .describe('The built-in tools that it has, for example `["Bash","Read","Edit"]`. Default: all.'),
  toolTimeoutSec: toolTimeout.describe('Time limit of a shell command in seconds. Default: its own.'),
  compaction: onOrOff
    .default('on')
    .describe('`off` ends a conversation that outgrows the context instead of compacting it.'),
  window: z
    .int({ error: 'expected a number of tokens from 1000 to 999999999' })
    .min(1000, { error: 'expected a number of tokens from 1000 to 999999999' })
    .max(999_999_999, { error: 'expected a number of tokens from 1000 to 999999999' })
    .optional()
    .describe("Tokens from which the conversation is compacted. Default: near the end of the model's context."),
  arguments: extraArguments([
    ...flags.filter((flag) => flag.startsWith('--')),
    '-p',
    '--model',
    '--tools',
    '--agents',
    '--mcp-config',
    '--disallowedTools',
    '--disallowed-tools',
    '--dangerously-skip-permissions',
    '--autocompact',
    '--input-format',
  ]),
} as const;
type Options = z.output<z.ZodObject<typeof options>>;

/** Claude Code, which calls the Anthropic Messages API. */
export function createClaudeCode({ runtime, packages }: CliDependencies): AgentSpec<typeof options> {
  return {
    name: 'claude-code',
    description: 'Claude Code (@anthropic-ai/claude-code)',
    usesModel: true,
    needsSolution: false,
    skills: '.claude/skills',
    mcpTransports: ['stdio', 'http', 'sse'],
    takesHostTools: true,
    sandboxes: bunSandboxes,
    loader: bunLoader,
    options,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('claude-code')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('claude-code', context);
      return {
        argv: withInstruction(baseUrl, [
          program,
          ...flags,
          ...toolFlags(context.options),
          ...serverFlags(baseUrl, context),
          ...context.options.arguments,
        ]),
        env: {
          // Without it the program refuses to run as root, which an agent may be in its own container.
          IS_SANDBOX: '1',
          ANTHROPIC_BASE_URL: baseUrl,
          ANTHROPIC_AUTH_TOKEN: secret,
          ANTHROPIC_MODEL: modelName,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          // The header differs between requests, which would break the shared prefix of a branch.
          CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
          ...windowsOf(context, context.options),
          ...timeoutOf(context.options),
          ...serverVariables(context, secret),
        },
        files: homeFiles(context.instruction),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

function toolFlags({ subAgents: agents, tools }: Options): string[] {
  return [
    ...(agents === 'off' ? ['--disallowedTools', 'Task,Agent'] : []),
    ...(typeof agents === 'object' ? ['--agents', JSON.stringify(agents)] : []),
    ...(tools === undefined ? [] : ['--tools', tools.join(',')]),
  ];
}

/**
 * Variables for MCP servers. Claude Code takes no credential that it knows by its name into the configuration of a server, so the
 * secret has another name, too; and by default it offers such tools only to a model that searches for them.
 */
function serverVariables(
  { hostTools = [], mcpServers = [] }: AgentStart,
  secret: string,
): Readonly<Record<string, string>> {
  if (hostTools.length + mcpServers.length === 0) return {};
  const timeout = String(hostToolTimeoutSec * 1000);
  return {
    ...(hostTools.length > 0 && { [secretVariable]: secret }),
    MCP_TOOL_TIMEOUT: timeout,
    ENABLE_TOOL_SEARCH: 'false',
  };
}

function serverFlags(baseUrl: string, start: AgentStart): string[] {
  const url = hostToolsUrl(baseUrl, start);
  const headers = { Authorization: `Bearer \${${secretVariable}}` };
  const mcpServers = {
    ...(url !== null && { [hostToolServer]: { type: 'http', url, headers } }),
    ...Object.fromEntries((start.mcpServers ?? []).map((server) => [server.name, entryOf(server)])),
  };
  return Object.keys(mcpServers).length === 0 ? [] : ['--mcp-config', JSON.stringify({ mcpServers })];
}

function entryOf(server: McpServer): object {
  if (server.transport !== 'stdio') return { type: server.transport, url: server.url };
  const [command, ...args] = server.command;
  return { type: 'stdio', command, args };
}

function windowsOf({ contextLength }: AgentStart, { compaction, window }: Options): Record<string, string> {
  return {
    ...(contextLength == null ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextLength) }),
    ...(window === undefined ? {} : { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(window) }),
    ...(compaction === 'on' ? {} : { DISABLE_AUTO_COMPACT: '1' }),
  };
}

function timeoutOf({ toolTimeoutSec }: Options): Record<string, string> {
  if (toolTimeoutSec === undefined) return {};
  const ms = String(toolTimeoutSec * 1000);
  return { BASH_DEFAULT_TIMEOUT_MS: ms, BASH_MAX_TIMEOUT_MS: ms };
}
