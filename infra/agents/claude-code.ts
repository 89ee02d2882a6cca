import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { AgentContext, AgentSpec } from './agent.ts';
import {
  bunLoader,
  bunSandboxes,
  type CliDependencies,
  homeFiles,
  modelName,
  requireGateway,
  withInstruction,
} from './cli.ts';
import { packageFile } from './packages.ts';

const program = packageFile(`@anthropic-ai/claude-code-linux-${process.arch}/claude`);
/** The agent runs unattended and the sandbox confines it, so permission checks are off. The log is one line of JSON per event. */
const flags = ['--print', '--permission-mode', 'bypassPermissions', '--output-format', 'stream-json', '--verbose'];

const onOrOff = z.enum(['on', 'off'], { error: 'expected on or off' });
const optionsSchema = z.strictObject({
  /** `off` removes the tool that delegates a task to a sub-agent. */
  subAgents: onOrOff.default('on'),
  /** `off` ends a conversation that outgrows the context instead of compacting it. */
  compaction: onOrOff.default('on'),
  /** Length in tokens from which the conversation is compacted; default: near the end of the model's context. */
  window: z
    .string()
    .regex(/^[1-9]\d{3,8}$/, 'expected a number of tokens, at least 1000')
    .optional(),
});
type Options = z.output<typeof optionsSchema>;

/** Claude Code, which calls the Anthropic Messages API. */
export function createClaudeCode(
  { runtime, packages }: CliDependencies,
  options: Options = optionsSchema.parse({}),
): AgentSpec {
  return {
    name: 'claude-code',
    description: 'Claude Code (@anthropic-ai/claude-code)',
    usesModel: true,
    needsSolution: false,
    sandboxes: bunSandboxes,
    loader: bunLoader,
    withOptions: (given) => createClaudeCode({ runtime, packages }, parseOptions(given)),
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('claude-code')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('claude-code', context);
      return {
        argv: withInstruction(baseUrl, [program, ...flags, ...toolsOff(options)]),
        env: {
          ANTHROPIC_BASE_URL: baseUrl,
          ANTHROPIC_AUTH_TOKEN: secret,
          ANTHROPIC_MODEL: modelName,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          // The header differs between requests, which would break the shared prefix of a branch.
          CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
          ...windowsOf(context, options),
        },
        files: homeFiles(context.instruction),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

const toolsOff = ({ subAgents }: Options): string[] => (subAgents === 'on' ? [] : ['--disallowedTools', 'Task,Agent']);

function windowsOf({ contextLength }: AgentContext, { compaction, window }: Options): Record<string, string> {
  return {
    ...(contextLength == null ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextLength) }),
    ...(window === undefined ? {} : { CLAUDE_CODE_AUTO_COMPACT_WINDOW: window }),
    ...(compaction === 'on' ? {} : { DISABLE_AUTO_COMPACT: '1' }),
  };
}

function parseOptions(given: Readonly<Record<string, string>>): Options {
  const parsed = optionsSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => [...path, message].join(': '));
  throw new TemperFailure(
    'UnknownAgent',
    `claude-code: options are subAgents, compaction (on, off) and window (tokens); ${problems.join('; ')}`,
  );
}
