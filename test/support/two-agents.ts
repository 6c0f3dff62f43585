/**
 * Runs two library agents in one process: `two-agents.ts HOME WORKSPACE`. A line "a TEXT" or "b TEXT" is a turn of one of them, answered by
 * "done".
 */

import { createAgent, type ModelCall } from '../../src/agent.ts'

const [home = '', cwd = ''] = process.argv.slice(2)
const model: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role === 'user') yield { type: 'tool_use', name: 'time', input: {} }
  else yield { type: 'text', content: 'It is late.' }
}
const agents = { a: createAgent({ home, cwd, modelCall: model }), b: createAgent({ home, cwd, modelCall: model }) }

for await (const line of console) {
  const agent = line.startsWith('a') ? agents.a : agents.b
  for await (const _ of agent.run(line.slice(2)));
  console.log(agent.ending()?.code === 'answered' ? 'done' : JSON.stringify(agent.ending()))
}
