import { stringify } from 'smol-toml';
import type { z } from 'zod';
import type { McpServer } from '../harbor/mcp-servers.ts';
import type { AgentContext, AgentSpec } from './agent.ts';
import { type CliDependencies, homeFiles, modelName, requireGateway, secretVariable, withInstruction } from './cli.ts';
import { hostToolServer, hostToolsUrl, hostToolTimeoutSec } from './host-tools.ts';
import { extraArguments, type SubAgentDefinitions, subAgents } from './options.ts';
import { packageFile } from './packages.ts';
import { runScript } from './runtime.ts';

const script = packageFile('@openai/codex/bin/codex.js');
const provider = 'temper';
/** Codex can't create its own sandbox inside temper's. */
const flags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];

const options = {
  subAgents,
  arguments: extraArguments(
    [
      ...flags,
      '--model',
      '-m',
      '--sandbox',
      '-s',
      '--profile',
      '-p',
      '--oss',
      '--local-provider',
      '--approve-for-me',
      '--ignore-user-config',
      '--cd',
      '-C',
    ],
    [
      'model',
      'model_context_window',
      'model_provider',
      'model_providers',
      'check_for_update_on_startup',
      'shell_environment_policy',
      'analytics',
      'agents',
      'features.multi_agent',
      'mcp_servers.temper',
    ],
  ),
} as const;
type Options = z.output<z.ZodObject<typeof options>>;

/** Codex, which calls the OpenAI Responses API. */
export function createCodex({ runtime, packages }: CliDependencies): AgentSpec<typeof options> {
  return {
    name: 'codex',
    description: 'Codex (@openai/codex)',
    usesModel: true,
    needsSolution: false,
    skills: '.agents/skills',
    mcpTransports: ['stdio', 'http'],
    takesHostTools: true,
    options,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('codex')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('codex', context);
      return {
        // The last argument means standard input.
        argv: withInstruction(baseUrl, runScript(script, ['exec', ...flags, ...context.options.arguments, '-'])),
        env: { [secretVariable]: secret },
        files: homeFiles(context.instruction, {
          '.codex/config.toml': configuration(baseUrl, context),
          ...(typeof context.options.subAgents === 'object' ? rolesOf(context.options.subAgents) : {}),
        }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const configuration = (baseUrl: string, context: AgentContext<Options>): string => {
  const { contextLength = null, options } = context;
  return `model = "${modelName}"
${contextLength === null ? '' : `model_context_window = ${contextLength}\n`}model_provider = "${provider}"
check_for_update_on_startup = false

[model_providers.${provider}]
name = "${provider}"
base_url = "${baseUrl}/v1"
wire_api = "responses"
env_key = "${secretVariable}"

[shell_environment_policy]
exclude = ["${secretVariable}"]

[analytics]
enabled = false
${options.subAgents === 'off' ? '\n[features]\nmulti_agent = false\n' : ''}${hostTools(hostToolsUrl(baseUrl, context))}${(context.mcpServers ?? []).map(serverTable).join('')}`;
};

const hostTools = (url: string | null): string =>
  url === null
    ? ''
    : `
[mcp_servers.${hostToolServer}]
url = "${url}"
bearer_token_env_var = "${secretVariable}"
tool_timeout_sec = ${hostToolTimeoutSec}
`;

/** The table of a task's own server. The texts of JSON are texts of TOML, too. */
const serverTable = (server: McpServer): string => {
  const [program, ...args] = server.transport === 'stdio' ? server.command : [];
  return `
[mcp_servers.${server.name}]
${server.transport === 'stdio' ? `command = ${JSON.stringify(program)}\nargs = ${JSON.stringify(args)}` : `url = ${JSON.stringify(server.url)}`}
tool_timeout_sec = ${hostToolTimeoutSec}
`;
};

/** Files of the roles that a sub-agent can have. Codex finds them by their folder. */
const rolesOf = (agents: SubAgentDefinitions): Record<string, string> =>
  Object.fromEntries(
    Object.entries(agents).map(([name, { description, prompt }]) => [
      `.codex/agents/${name}.toml`,
      stringify({ name, description, developer_instructions: prompt }),
    ]),
  );
