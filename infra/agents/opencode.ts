import type { AgentSpec } from './agent.ts';
import {
  type CliDependencies,
  gatewayOf,
  homeFiles,
  modelName,
  sandboxOfBun,
  secretVariable,
  withInstruction,
} from './cli.ts';
import { packageFile } from './packages.ts';

/** A binary that needs the image's own glibc, for processors with and without AVX2. */
const program = packageFile('opencode-linux-x64-baseline/bin/opencode');
const provider = 'temper';

/** OpenCode, by OpenAI chat completions. */
export function createOpencode({ runtime, packages }: CliDependencies): AgentSpec {
  return {
    name: 'opencode',
    description: 'OpenCode (opencode-ai)',
    usesModel: true,
    needsSolution: false,
    sandbox: sandboxOfBun,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('opencode')]),
    command(context) {
      const { baseUrl, secret } = gatewayOf('opencode', context);
      return {
        argv: withInstruction(baseUrl, [program, 'run', '--model', `${provider}/${modelName}`]),
        env: { [secretVariable]: secret, OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
        files: homeFiles(context.instruction, { '.config/opencode/opencode.json': configuration(baseUrl) }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const configuration = (baseUrl: string): string =>
  JSON.stringify({
    // Nobody is there to be asked, and the sandbox is the permission.
    permission: 'allow',
    share: 'disabled',
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${baseUrl}/v1`, apiKey: `{env:${secretVariable}}` },
        models: { [modelName]: {} },
      },
    },
  });
