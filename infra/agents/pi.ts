import type { AgentSpec } from './agent.ts';
import { type CliDependencies, gatewayOf, homeFiles, modelName, secretVariable, withInstruction } from './cli.ts';
import { packageFile } from './packages.ts';
import { runScript } from './runtime.ts';

const script = packageFile('@earendil-works/pi-coding-agent/dist/bundle/cli.js');
const provider = 'temper';

/** Pi, by OpenAI chat completions. */
export function createPi({ runtime, packages }: CliDependencies): AgentSpec {
  return {
    name: 'pi',
    description: 'Pi (@earendil-works/pi-coding-agent)',
    usesModel: true,
    needsSolution: false,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('pi')]),
    command(context) {
      const { baseUrl, secret } = gatewayOf('pi', context);
      const options = ['--print', '--no-session', '--provider', provider, '--model', modelName];
      return {
        argv: withInstruction(baseUrl, runScript(script, options)),
        env: { [secretVariable]: secret, PI_OFFLINE: '1', PI_SKIP_VERSION_CHECK: '1', PI_TELEMETRY: '0' },
        files: homeFiles(context.instruction, { '.pi/agent/models.json': models(baseUrl) }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const models = (baseUrl: string): string =>
  JSON.stringify({
    providers: {
      [provider]: {
        baseUrl: `${baseUrl}/v1`,
        api: 'openai-completions',
        apiKey: `$${secretVariable}`,
        compat: { supportsDeveloperRole: false, supportsReasoningEffort: false },
        models: [{ id: modelName }],
      },
    },
  });
