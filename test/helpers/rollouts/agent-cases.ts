/** Calls of an agent's own tools: some look at the file with the bug, one fixes it. */
export interface AgentCase {
  readonly agent: string;
  readonly calls: readonly { readonly name: string; readonly arguments: object }[];
  /** The number of the last calls by which it ends; 0 if it ends with a text. */
  readonly ends: number;
  /** The number of model calls beside the conversation, for example for a title. */
  readonly sideTurns: number;
  /** The name that it gives to a host tool. */
  readonly hostTool: (tool: string) => string;
  /** Whether its commands inherit the key of its session, because it has no setting against it that works in a sealed container. */
  readonly passesKeyOn: boolean;
}

const [wrong, right] = ['quotient **= right;', 'quotient /= right;'];
const patch = `*** Begin Patch
*** Update File: stock.js
@@
-  ${wrong}
+  ${right}
*** End Patch
`;
/** The task whose bug these calls fix. */
export const taskToFix = 'generated:train/1/0';
/** A command that shows the policy everything that the agent's commands can see. */
const look = 'cat stock.js; env';

export const agentCases: readonly AgentCase[] = [
  {
    agent: 'mini',
    calls: [
      { name: 'bash', arguments: { command: look } },
      { name: 'bash', arguments: { command: `sed -i 's|\\*\\*=|/=|' stock.js` } },
      { name: 'submit', arguments: {} },
    ],
    ends: 1,
    sideTurns: 0,
    hostTool: (tool) => tool,
    passesKeyOn: false,
  },
  {
    agent: 'terminal?commands=tools',
    calls: [
      { name: 'terminal', arguments: { keystrokes: `${look}\n`, duration: 30 } },
      { name: 'terminal', arguments: { keystrokes: `sed -i 's|\\*\\*=|/=|' stock.js\n`, duration: 30 } },
      { name: 'task_complete', arguments: {} },
      { name: 'task_complete', arguments: {} },
    ],
    ends: 2,
    sideTurns: 0,
    hostTool: (tool) => tool,
    passesKeyOn: false,
  },
  {
    agent: 'pi',
    calls: [
      { name: 'read', arguments: { path: 'stock.js' } },
      { name: 'edit', arguments: { path: 'stock.js', edits: [{ oldText: wrong, newText: right }] } },
      { name: 'bash', arguments: { command: look } },
    ],
    ends: 0,
    sideTurns: 0,
    hostTool: (tool) => tool,
    passesKeyOn: true,
  },
  {
    agent: 'claude-code',
    calls: [
      { name: 'Read', arguments: { file_path: '/workspace/stock.js' } },
      // The agent returns the call with a default filled in (replace_all), which is still the same turn.
      { name: 'Edit', arguments: { file_path: '/workspace/stock.js', old_string: wrong, new_string: right } },
      { name: 'Bash', arguments: { command: look, description: 'Look' } },
    ],
    ends: 0,
    sideTurns: 0,
    hostTool: (tool) => `mcp__temper__${tool}`,
    passesKeyOn: true,
  },
  {
    agent: 'codex',
    calls: [
      { name: 'exec_command', arguments: { cmd: 'cat stock.js' } },
      { name: 'exec_command', arguments: { cmd: `apply_patch <<'PATCH'\n${patch}PATCH` } },
      { name: 'exec_command', arguments: { cmd: look } },
    ],
    ends: 0,
    sideTurns: 0,
    hostTool: (tool) => `mcp__temper__${tool}`,
    passesKeyOn: false,
  },
  {
    agent: 'opencode',
    calls: [
      { name: 'read', arguments: { filePath: '/workspace/stock.js' } },
      { name: 'edit', arguments: { filePath: '/workspace/stock.js', oldString: wrong, newString: right } },
      { name: 'bash', arguments: { command: look, description: 'Look' } },
    ],
    ends: 0,
    sideTurns: 1,
    hostTool: (tool) => `temper_${tool}`,
    passesKeyOn: true,
  },
];
