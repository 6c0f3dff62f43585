/** Writes a record as fast as it can: `record-child.ts FOLDER NAME COUNT`. It prints "call receipt" for each result that is on disk. */

import { writeSync } from 'node:fs'
import { acting, callOf, refusing, runOf, started } from '../../src/memory/fixture.ts'
import { openRecord } from './record.ts'

const [folder = '', name = '', count = '0'] = process.argv.slice(2)
const { recorder, close } = openRecord(folder)
const run = runOf(1, { runId: `run-${name}`, turnId: `turn-${name}`, conversationId: `conversation-${name}` })

recorder.external(run, started(`question of ${name}`))
for (let number = 0; number < Number(count); number += 1) {
  const call = callOf(`call-${number}`, { path: `${number}.txt` })
  recorder.intent(run, acting(call))
  const done = recorder.external(run, { type: 'tool.done', id: call.id, outcome: { status: 'allowed', output: `result ${number}` } })
  const refused = callOf(`refused-${number}`)
  const denied = recorder.denied(run, refusing(refused))
  writeSync(1, `${call.id} ${done.type === 'tool.done' ? done.outcome.receipt : ''}\n${refused.id} ${denied}\n`)
}
close()
