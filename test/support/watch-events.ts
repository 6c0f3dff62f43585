/** Follows the events of a home: `watch-events.ts HOME WORKSPACE AFTER`. It prints "id type run" for each numbered event. */

import { writeSync } from 'node:fs'
import { hostOf } from './host.ts'

const [home = '', workspace = '', after = '0'] = process.argv.slice(2)
const host = await hostOf(home, workspace)
for await (const { id, runId, event } of host.events.subscribe({ after }))
  if (id !== undefined) writeSync(1, `${id} ${event.type} ${runId ?? ''}\n`)
