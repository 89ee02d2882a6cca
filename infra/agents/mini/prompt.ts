/** What mini says to the model besides the task itself. Short, so that a tiny policy's context has room for the work. */
export const systemPrompt = 'Repair the code with the tools, then submit.';

export const reminder = 'Call a tool. Call submit when you are done.';
