import type { AgentSpec } from './agent.ts';
import { type CliDependencies, gatewayOf, homeFiles, modelName, sandboxOfBun, withInstruction } from './cli.ts';
import { packageFile } from './packages.ts';

/** A binary that needs the image's own glibc. */
const program = packageFile(`@anthropic-ai/claude-code-linux-${process.arch}/claude`);
/** Nobody is there to be asked, and the sandbox is the permission. The log is one JSON line for each event. */
const options = ['--print', '--permission-mode', 'bypassPermissions', '--output-format', 'stream-json', '--verbose'];

/** Claude Code, by Anthropic messages. */
export function createClaudeCode({ runtime, packages }: CliDependencies): AgentSpec {
  return {
    name: 'claude-code',
    description: 'Claude Code (@anthropic-ai/claude-code)',
    usesModel: true,
    needsSolution: false,
    sandbox: sandboxOfBun,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('claude-code')]),
    command(context) {
      const { baseUrl, secret } = gatewayOf('claude-code', context);
      return {
        argv: withInstruction(baseUrl, [program, ...options]),
        env: {
          ANTHROPIC_BASE_URL: baseUrl,
          ANTHROPIC_AUTH_TOKEN: secret,
          ANTHROPIC_MODEL: modelName,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          // It differs from request to request, and a branch must keep its prefix.
          CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
        },
        files: homeFiles(context.instruction),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}
