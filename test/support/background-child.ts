/** Starts a command in the background, says so, and stays: `background-child.ts HOME WORKSPACE COMMAND`. */

import { dirname } from 'node:path'
import { begin, calling, events, hostOf } from './host.ts'

const [home = '', workspace = '', command = ''] = process.argv.slice(2)
const conversation = await begin(await hostOf(home, workspace, dirname(home)), calling('shell', { command, background: true }))
const seen = await events(conversation)
console.log(JSON.stringify(seen.find(({ type }) => type === 'tool_result')))
