import { size } from './terminal.ts';

const about = `You solve a task by typing into a Linux terminal of ${size.columns} columns and ${size.rows} rows. After each of your answers you see what is new on it. No person reads your answers.`;

const keys = `Keystrokes are sent as they are: end a command with a line break to run it. The names of keys, alone in a text, send that key: C-c, C-d, Enter, Tab, Escape, Up, PageDown, M-x.
The wait is the number of seconds to wait afterwards, 1 by default. It ends early with the next prompt of the shell, so give a command that takes long a long wait, and send empty keystrokes to wait longer.`;

/** The fixed part of the prompt of a model that writes its commands as text. */
export const textPrompt = `${about}

Answer with one JSON object each time, and nothing else:

{
  "analysis": "what you see, and what is still to do",
  "plan": "what your commands are for",
  "commands": [
    { "keystrokes": "ls -la\\n", "duration": 1 },
    { "keystrokes": "make test\\n", "duration": 30 }
  ],
  "task_complete": false
}

${keys} The wait is "duration".
"commands" may be empty. Set "task_complete" to true only when all of the task is done.`;

/** The fixed part of the prompt of a model that calls tools. */
export const toolPrompt = `${about}

${keys}
Call task_complete only when all of the task is done.`;

export const confirmation =
  'Is all of the task done? The terminal is closed then. If so, say that the task is complete once more; if not, continue.';

export const textReminder = 'Nothing was typed. Answer with one JSON object with "commands" and "task_complete".';
export const toolReminder = 'Nothing was typed. Call terminal, or task_complete if all of the task is done.';
