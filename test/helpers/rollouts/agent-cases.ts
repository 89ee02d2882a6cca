/** A call of each agent's own tools: one that looks at the file with the bug, one that mends it. */
export interface AgentCase {
  readonly agent: string;
  readonly calls: readonly { readonly name: string; readonly arguments: object }[];
  /** Calls of the model beside the conversation, such as for a title. */
  readonly sideTurns: number;
  /** Do its commands inherit the key of its session? It has no setting against it that works in a sealed container. */
  readonly handsOnKey: boolean;
}

const [wrong, right] = ['quotient **= right;', 'quotient /= right;'];
const patch = `*** Begin Patch
*** Update File: stock.js
@@
-  ${wrong}
+  ${right}
*** End Patch
`;
/** Whose bug these calls mend. */
export const mendedTask = 'generated:train/1/0';
/** What an agent's commands can see is the policy's. */
const look = 'cat stock.js; env';

export const agentCases: readonly AgentCase[] = [
  {
    agent: 'mini',
    calls: [
      { name: 'bash', arguments: { command: look } },
      { name: 'bash', arguments: { command: `sed -i 's|\\*\\*=|/=|' stock.js` } },
      { name: 'submit', arguments: {} },
    ],
    sideTurns: 0,
    handsOnKey: false,
  },
  {
    agent: 'pi',
    calls: [
      { name: 'read', arguments: { path: 'stock.js' } },
      { name: 'edit', arguments: { path: 'stock.js', edits: [{ oldText: wrong, newText: right }] } },
      { name: 'bash', arguments: { command: look } },
    ],
    sideTurns: 0,
    handsOnKey: true,
  },
  {
    agent: 'claude-code',
    calls: [
      { name: 'Read', arguments: { file_path: '/workspace/stock.js' } },
      // It gives the call back with a default filled in (replace_all): that is the same turn.
      { name: 'Edit', arguments: { file_path: '/workspace/stock.js', old_string: wrong, new_string: right } },
      { name: 'Bash', arguments: { command: look, description: 'Look' } },
    ],
    sideTurns: 0,
    handsOnKey: true,
  },
  {
    agent: 'codex',
    calls: [
      { name: 'exec_command', arguments: { cmd: 'cat stock.js' } },
      { name: 'exec_command', arguments: { cmd: `apply_patch <<'PATCH'\n${patch}PATCH` } },
      { name: 'exec_command', arguments: { cmd: look } },
    ],
    sideTurns: 0,
    handsOnKey: false,
  },
  {
    agent: 'opencode',
    calls: [
      { name: 'read', arguments: { filePath: '/workspace/stock.js' } },
      { name: 'edit', arguments: { filePath: '/workspace/stock.js', oldString: wrong, newString: right } },
      { name: 'bash', arguments: { command: look, description: 'Look' } },
    ],
    sideTurns: 1,
    handsOnKey: true,
  },
];
