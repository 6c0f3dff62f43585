/**
 * Dies by kill -9 at one point of a call: `crash-child.ts FOLDER POINT STATUS`. POINT is begun, appended or committed; with recover it is a
 * start that repairs the record and dies after it has appended a receipt.
 */

import { acting, callOf, runOf, started } from '../../src/memory/fixture.ts'
import type { OpenLedger } from '../../src/receipts/contract.ts'
import type { ToolOutcome } from '../../src/runtime/event.ts'
import { openRecord } from './record.ts'

const [folder = '', point = '', status = 'allowed'] = process.argv.slice(2)

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  throw new Error('still alive')
}

/** The append itself is real and synced to disk. */
const dying =
  (open: OpenLedger): OpenLedger =>
  (...known) => {
    const opened = open(...known)
    if (!opened.ok) return opened
    const write = () => {
      if (point === 'begun') die()
      const written = opened.ledger.write()
      if (point !== 'committed') die()
      return written
    }
    return { ok: true, ledger: { ...opened.ledger, write } }
  }

const outcomes: { readonly [status: string]: ToolOutcome } = {
  allowed: { status: 'allowed', output: 'what it returned' },
  denied: { status: 'denied', output: '', error: 'path.outside: no longer inside the workspace' },
  failed: { status: 'failed', output: 'half of it', error: 'ended with 1', metadata: { sandbox: 'bubblewrap' } },
}

const { recorder } = openRecord(folder, dying)
if (point === 'recover') recorder.recover()
else {
  const call = callOf('call_1')
  const outcome = outcomes[status]
  if (!outcome) throw new Error(`no outcome "${status}"`)
  recorder.external(runOf(1), started('hi'))
  recorder.intent(runOf(1), acting(call, 'operator'))
  recorder.external(runOf(1), { type: 'tool.done', id: call.id, outcome })
}
die()
