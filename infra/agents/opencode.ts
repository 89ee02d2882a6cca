import type { AgentSpec } from './agent.ts';
import {
  bunLoader,
  bunSandboxes,
  type CliDependencies,
  homeFiles,
  modelName,
  replyReserve,
  requireGateway,
  secretVariable,
  withInstruction,
} from './cli.ts';
import { packageFile } from './packages.ts';

/** The build that runs on processors with and without AVX2. */
const program = packageFile('opencode-linux-x64-baseline/bin/opencode');
const provider = 'temper';

/** OpenCode, which calls the OpenAI Chat Completions API. */
export function createOpencode({ runtime, packages }: CliDependencies): AgentSpec {
  return {
    name: 'opencode',
    description: 'OpenCode (opencode-ai)',
    usesModel: true,
    needsSolution: false,
    sandboxes: bunSandboxes,
    loader: bunLoader,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('opencode')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('opencode', context);
      return {
        argv: withInstruction(baseUrl, [program, 'run', '--model', `${provider}/${modelName}`]),
        env: { [secretVariable]: secret, OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
        files: homeFiles(context.instruction, {
          '.config/opencode/opencode.json': configuration(baseUrl, context.contextLength ?? null),
        }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const configuration = (baseUrl: string, contextLength: number | null): string =>
  JSON.stringify({
    // The agent runs unattended and the sandbox confines it, so every tool is allowed.
    permission: 'allow',
    share: 'disabled',
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${baseUrl}/v1`, apiKey: `{env:${secretVariable}}` },
        models: {
          [modelName]:
            contextLength === null ? {} : { limit: { context: contextLength, output: replyReserve(contextLength) } },
        },
      },
    },
  });
