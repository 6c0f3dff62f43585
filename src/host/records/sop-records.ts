/** Keeps the runs of procedures, and asks a person what they wait for through the table of approvals. */

import { canonical } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { flat, visible } from '../../kit/text.ts'
import { createSopStore } from '../../memory/journal/sop-store.ts'
import type { Memory } from '../../memory/memory.ts'
import { gateIdOf } from '../../runtime/gate-id.ts'
import type { SopRecords } from '../contract/records-api.ts'
import { existing, withChanges } from './approvals.ts'
import { recoverRecord } from './integrity/create-record.ts'
import type { RecordsBase } from './records-base.ts'

const triggerRule = 'sop.trigger'

/**
 * Returns the versions of a file that begin by themselves, or with no path those of all files. Each is a permanent approval: sealed, listed
 * and revoked like the others.
 */
export function enabledVersions({ rules }: Pick<Memory['approvals'], 'rules'>, path?: string) {
  return rules().flatMap(({ id, tool, scope }) => {
    const [of, digest]: readonly string[] = tool === triggerRule ? JSON.parse(scope) : []
    return digest !== undefined && (path ?? of) === of ? [{ id, digest }] : []
  })
}

export function sopRecords({ memory, record, live, setup }: RecordsBase): SopRecords {
  const { approvals } = memory
  return {
    runs: createSopStore(memory.store, Date.now),
    ask({ run, name, step, kind, prompt, livesMs }) {
      const isAnswered = (each: string) => approvals.get(each) !== undefined && approvals.get(each)?.state !== 'open'
      let id = gateIdOf(run, kind === 'sop.doubt' ? `${step}.doubt` : step)
      // A step may come into doubt again after an answer.
      for (let count = 2; kind === 'sop.doubt' && isAnswered(id); count += 1) id = gateIdOf(run, `${step}.doubt${count}`)
      if (approvals.get(id)) return id
      const reason = kind === 'sop.doubt' ? 'nobody knows whether this step has happened; yes runs it again' : 'the procedure asks here'
      const summary = visible(flat(setup.redactor.text(`${name}, ${step}: ${prompt}`)))
      const identity = { runId: run, conversationId: run, turnId: run, provider: 'sop', model: 'none', channel: 'sop' }
      const call = { id: id.slice(run.length + 1), name: kind, input: {} }
      const plan = sha256(canonical({ kind, run, step, prompt: prompt.toWellFormed() }))
      const judgement = { verdict: 'ask', risk: 'medium', rule: 'sop', reason, plan, summary, writes: [] } as const
      approvals.create({ run: identity, gate: { type: 'gate.open', id: call.id, call, judgement }, expires: Date.now() + livesMs })
      return id
    },
    question(id) {
      const found = approvals.get(id)
      return found && { ...found, isOver: found.state !== 'open' || found.expires <= Date.now() }
    },
    use: (id) => approvals.consume({ id, plan: approvals.get(id)?.plan ?? '' }).ok,
    changesOf: async (id) => (await withChanges({ setup, memory }, existing({ memory }, id))).set,
    enabled: (path) => enabledVersions(approvals, path).map(({ digest }) => digest),
    enable: (path, digest, by) =>
      record.transaction(() => {
        for (const { id } of enabledVersions(approvals, path)) approvals.revokeRule(id)
        if (digest !== undefined) approvals.addRule({ tool: triggerRule, scope: JSON.stringify([path, digest]), by })
      }),
    close: (id, why) => approvals.close({ id, by: 'sop', note: why }),
    recover: async () => void (await recoverRecord(setup, record)),
    written: () => live?.written(),
  }
}
