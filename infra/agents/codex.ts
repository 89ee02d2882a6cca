import type { AgentSpec } from './agent.ts';
import { type CliDependencies, homeFiles, modelName, requireGateway, secretVariable, withInstruction } from './cli.ts';
import { packageFile } from './packages.ts';
import { runScript } from './runtime.ts';

const script = packageFile('@openai/codex/bin/codex.js');
const provider = 'temper';
/** Codex can't create its own sandbox inside temper's. The last argument means standard input. */
const options = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '-'];

/** Codex, which calls the OpenAI Responses API. */
export function createCodex({ runtime, packages }: CliDependencies): AgentSpec {
  return {
    name: 'codex',
    description: 'Codex (@openai/codex)',
    usesModel: true,
    needsSolution: false,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('codex')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('codex', context);
      return {
        argv: withInstruction(baseUrl, runScript(script, options)),
        env: { [secretVariable]: secret },
        files: homeFiles(context.instruction, {
          '.codex/config.toml': configuration(baseUrl, context.contextLength ?? null),
        }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const configuration = (baseUrl: string, contextLength: number | null): string => `model = "${modelName}"
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
`;
