import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readAnswer } from '../../../../infra/agents/terminal/answer.ts';
import { userSeconds } from '../../../helpers/user-seconds.ts';

const ls = { keystrokes: 'ls\n', waitSec: 1 };
const object = '{"commands": [{"keystrokes": "ls\\n"}]}';

/** Replies that are read as commands: the reply, its commands, whether the task is complete, and a part of each note. */
const answers: Readonly<Record<string, readonly [string, readonly object[], boolean?, (readonly string[])?]>> = {
  'an object as it is asked for': [
    '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n", "duration": 0.1}], "task_complete": false}',
    [{ ...ls, waitSec: 0.1 }],
  ],
  'an object in a fence with words around it': [
    `Sure, I look first.\n\`\`\`json\n${object}\n\`\`\`\nThen I continue.`,
    [ls],
  ],
  'an object in a fence without an end': [`\`\`\`\n${object}`, [ls]],
  'an object after reasoning that has a draft': [`<think>\nmaybe {"commands": []}\n</think>\n\n${object}`, [ls]],
  'an object after reasoning that the template has opened': [`or {"commands": []}?</think>${object}`, [ls]],
  'an object that types the end of reasoning': [
    '{"commands": [{"keystrokes": "grep </think> log\\n"}]}',
    [{ ...ls, keystrokes: 'grep </think> log\n' }],
  ],
  'an object after another one': [`Use {"a": 1} here.\n${object}`, [ls]],
  'an object after a list of something else': [`It holds [{"id": 1}].\n${object}`, [ls]],
  'an object after code': [`function f() { return {}; }\n${object}`, [ls]],
  'the first of two objects, the second of which answers a made-up terminal': [
    `${object}\nNew output:\n{"commands": [{"keystrokes": "rm -r .\\n"}]}`,
    [ls],
  ],
  'an object in the tags of a tool call': [`<tool_call>\n${object}\n</tool_call>`, [ls]],
  'a list of commands': ['[{"keystrokes": "ls\\n"}]', [ls]],
  'one command': ['{"keystrokes": "C-c", "duration": 2}', [{ keystrokes: 'C-c', waitSec: 2 }]],
  'commands that are texts': ['{"commands": ["ls\\n"]}', [ls]],
  'a command in the place of the list': ['{"commands": {"keystrokes": "ls\\n"}}', [ls]],
  'no commands': ['{"commands": [], "task_complete": false}', []],
  'the end without commands': ['{"task_complete": true}', [], true],
  'commands and the end': ['{"commands": [{"keystrokes": "ls\\n"}], "task_complete": "true"}', [ls], true],
  'the names of the first Terminus': [
    '{"state_analysis": "s", "explanation": "e", "commands": [{"keystrokes": "make", "is_blocking": true, "timeout_sec": 30}], "is_task_complete": true}',
    [{ keystrokes: 'make\n', waitSec: 30 }],
    true,
  ],
  'a command that blocks without a time': [
    '{"commands": [{"keystrokes": "make\\n", "is_blocking": true}]}',
    [{ keystrokes: 'make\n', waitSec: Number.POSITIVE_INFINITY }],
  ],
  'a time as a text': ['{"commands": [{"keystrokes": "ls\\n", "duration": "5.5"}]}', [{ ...ls, waitSec: 5.5 }]],
  'tool calls as text': [
    '<tool_call>\n{"name": "terminal", "arguments": {"keystrokes": "ls\\n"}}\n</tool_call>\n<tool_call>\n{"name": "task_complete", "arguments": {}}\n</tool_call>',
    [ls],
    true,
  ],
  'the tags of Terminus': [
    '<response>\n<commands>\n<keystrokes duration="0.5">echo "a" > b\n</keystrokes>\n<keystrokes>ls\n</keystrokes>\n</commands>\n<task_complete>false</task_complete>\n</response>',
    [{ keystrokes: 'echo "a" > b\n', waitSec: 0.5 }, ls],
  ],
  'escapes that JSON has': [
    String.raw`{"commands": [{"keystrokes": "printf '\\x41\t\u00e9\u0003'\n"}]}`,
    [{ ...ls, keystrokes: "printf '\\x41\té\u0003'\n" }],
  ],
  'escapes that JSON lacks': [
    String.raw`{"commands": [{"keystrokes": "grep '\.py$' a\n"}]}`,
    [{ ...ls, keystrokes: "grep '\\.py$' a\n" }],
    false,
    ['unknown escape "\\\\."'],
  ],
  'line breaks inside a text': [
    '{"commands": [{"keystrokes": "cat > f <<E\n\thello\nE\n"}]}',
    [{ ...ls, keystrokes: 'cat > f <<E\n\thello\nE\n' }],
    false,
    ['not escaped'],
  ],
  'quotation marks inside a text': [
    '{"commands": [{"keystrokes": "echo "hi there" > f\\n"}]}',
    [{ ...ls, keystrokes: 'echo "hi there" > f\n' }],
    false,
    ['quotation mark'],
  ],
  'too many commas': ['{"commands": [{"keystrokes": "ls\\n",},],}', [ls], false, ['a comma too many']],
  'missing commas': [
    '{"analysis": "x"\n"commands": [{"keystrokes": "ls\\n"}\n{"keystrokes": "ls\\n"}]}',
    [ls, ls],
    false,
    ['lacks a comma'],
  ],
  'missing brackets at the end': ['{"commands": [{"keystrokes": "ls\\n"}', [ls], false, ['brackets are missing']],
  "Python's way of writing": [
    "{'commands': [{'keystrokes': 'ls\\n', 'duration': 1}], 'task_complete': True}",
    [ls],
    true,
    ['single quotation marks'],
  ],
  'a command without a line break before another one': [
    '{"commands": [{"keystrokes": "cat x"}, {"keystrokes": "ls\\n"}]}',
    [{ ...ls, keystrokes: 'cat x' }, ls],
    false,
    ['commands.0: the keystrokes do not end with a line break'],
  ],
};

/** Replies of which nothing is carried out, with a part of the message to the model. */
const problems: Readonly<Record<string, readonly [string, RegExp]>> = {
  'nothing at all': ['', /no JSON object with "commands"/],
  'words alone': ['I think that the task is done.', /no JSON object with "commands"/],
  'an empty object': ['{}', /no JSON object with "commands"/],
  'an object of something else': ['{"answer": 42}', /no JSON object with "commands"/],
  'reasoning without an end': [`<think>Then ${object}`, /ends inside <think>/],
  'a draft in reasoning alone': [`I try ${object}</think>It is done.`, /no JSON object/],
  'a reply that was cut off inside a text': ['{"commands": [{"keystrokes": "rm -r /tmp/', /ends there/],
  'a reply that was cut off after a command': [
    '{"analysis": "x", "commands": [{"keystrokes": "ls\\n"}, {"keystrokes": "ec',
    /expected the end of a text, but it ends there/,
  ],
  'a member without a value': ['{"commands": [{"keystrokes": }]}', /expected a value at "}]}"/],
  'a member without a colon': ['{"commands": [], "x" y}', /./],
  'a command without keystrokes': ['{"commands": [{"command": "ls"}]}', /commands\.0\.keystrokes: expected a text/],
  'a command that is a number': ['{"commands": [7]}', /commands\.0: expected an object with keystrokes, got 7/],
  'a time that is not a number': [
    '{"commands": [{"keystrokes": "ls\\n", "duration": "soon"}]}',
    /commands\.0\.duration: expected a number of seconds, got "soon"/,
  ],
  'a negative time': ['{"commands": [{"keystrokes": "a", "duration": -1}]}', /duration: expected a number/],
  'an object without commands or an end': ['{"task_complete": false}', /commands: expected a list of commands/],
  'an object that is too deep': [`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`, /at most 32 levels/],
};

describe('a reply as text', () => {
  for (const [title, [reply, commands, complete = false, notes = []]] of Object.entries(answers)) {
    it(`is read: ${title}`, () => {
      const answer = readAnswer(reply);
      assert.ok('commands' in answer, JSON.stringify(answer));
      assert.deepEqual([answer.commands, answer.complete], [commands, complete]);
      assert.equal(answer.notes.length, notes.length, answer.notes.join('\n'));
      for (const [index, part] of notes.entries()) assert.ok(answer.notes[index]?.includes(part), answer.notes[index]);
    });
  }

  for (const [title, [reply, message]] of Object.entries(problems)) {
    it(`is refused: ${title}`, () => {
      const answer = readAnswer(reply);
      assert.ok('problem' in answer, JSON.stringify(answer));
      assert.match(answer.problem, message);
    });
  }

  it('is read in a time that its length bounds, whatever it says', () => {
    const parts = ['{"a": "', '{"a":"x', '"\n', '[{"keystrokes":', '{"commands":[', '<keystrokes>', '</think>'];
    // Each takes a tenth of a second; a reader with quadratic time would take minutes.
    for (const part of parts) assert.ok(userSeconds(() => readAnswer(part.repeat(200_000))) < 20, part);
  });
});
