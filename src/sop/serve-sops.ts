/** Runs procedures in a process that stays: those that were begun over HTTP, in a chat or by a schedule, and those whose question was answered. */

import type { Host } from '../host/api.ts'
import { createHomePoll } from '../host/events/home-poll.ts'
import { FailureError } from '../host/failure.ts'
import { within } from '../kit/abort.ts'
import { errorText } from '../kit/errors.ts'
import { cut, flat, visible } from '../kit/text.ts'
import type { SopRunRow } from '../memory/journal/sop-store.ts'
import { findSop, findSops, sopTools } from './find-sops.ts'
import { beginSop, runSop, type SopTurns } from './run-sop.ts'

type Served = Pick<SopTurns, 'takeTurn' | 'onGate' | 'options'>

const lookMs = 1_000
const longestMs = 60_000
/** More runs than this wait for their turn. */
const mostAtOnce = 8

export async function serveSops(host: Host, turns: Served): Promise<{ close(graceMs: number): Promise<void> }> {
  const { log } = host.setup
  const records = await host.records()
  const running = new Map<string, Promise<unknown>>()
  const stop = new AbortController()

  async function start(id: string): Promise<void> {
    try {
      await records.sops.recover()
      const { name, state, why } = await runSop(id, { ...turns, host, records, signal: stop.signal, stays: true })
      log('info', 'procedure at rest', { run: id, name, state, ...(why === '' ? {} : { why }) })
    } catch (error) {
      log('error', 'procedure not run', { run: id, why: errorText(error) })
    }
  }

  const seen = { version: '', at: 0 }
  function look(): void {
    const version = records.sops.runs.version()
    // The clock alone ends a question that nobody answers.
    if (version === seen.version && Math.abs(Date.now() - seen.at) < longestMs) return
    Object.assign(seen, { version: running.size < mostAtOnce ? version : '', at: Date.now() })
    for (const id of records.sops.runs.ready()) {
      if (running.size >= mostAtOnce) return
      if (!running.has(id))
        running.set(
          id,
          start(id).finally(() => void running.delete(id)),
        )
    }
  }

  const endLook = createHomePoll(lookMs)(look)
  return {
    async close(graceMs) {
      endLook()
      stop.abort()
      await within(graceMs, Promise.all(running.values()))
    },
  }
}

/** Records a run for the process that serves procedures. @throws FailureError when the procedure or its inputs are wrong */
export async function queueSop(
  host: Host,
  name: string,
  given: { readonly inputs: SopRunRow['inputs']; readonly by: string },
): Promise<SopRunRow> {
  const file = await findSop(host.setup, await sopTools(host.setup), name)
  const records = await host.records()
  const begun = beginSop(file, { ...given, setup: host.setup, records, owner: 'queued' })
  records.sops.written()
  return begun
}

/** Begins what `/sop NAME KEY=VALUE` names, answers a question, or lists. @returns undefined when the text is something else @throws FailureError when it is wrong */
export async function beginByText(text: string, host: Host, by: string, mayApprove = false): Promise<string | undefined> {
  const [command, name, ...words] = text.trim().split(/\s+/)
  if (command !== '/sop') return undefined
  const records = await host.records()
  if (name === 'allow' || name === 'deny') {
    const [id = '', ...note] = words
    if (!mayApprove) throw new FailureError('usage', 'only the approvers of this channel answer questions')
    if (!id.startsWith('sop_')) throw new FailureError('usage', `usage: /sop ${name} RUN/STEP`)
    return `${name}: ${(await records.approvals.decide(id, { allow: name === 'allow', by, note: note.join(' ') || undefined })).summary}`
  }
  if (name !== undefined) {
    const inputs = Object.fromEntries(words.map((word) => [word.split('=')[0] ?? '', word.split('=').slice(1).join('=')]))
    const { id } = await queueSop(host, name, { inputs, by })
    return `${id} begins where "braidclaw serve" or "daemon" is up; else: braidclaw sop resume ${id}`
  }
  const files = (await findSops(host.setup, new Map())).map((file) => `${visible(file.name)}  ${visible(flat(file.sop.description))}`)
  const runs = records.sops.runs.list({ limit: 5 })
  const lines = runs.map((run) => `${run.id}  ${visible(run.name)}  ${run.state}  ${cut(visible(flat(run.why)), 200)}`.trimEnd())
  const open = records.approvals.list({ limit: 20 }).filter(({ tool }) => tool.startsWith('sop.'))
  const questions = open.map(({ id, summary }) => `${summary}\n  /sop allow ${id}   /sop deny ${id}`)
  return [...files, ...lines, ...questions].join('\n') || 'no procedures yet (docs/sop.md)'
}

/** Works as `beginByText`, for a person: what is wrong is the answer. */
export async function sopCommand(...asked: Parameters<typeof beginByText>): Promise<string | undefined> {
  try {
    return await beginByText(...asked)
  } catch (error) {
    if (error instanceof FailureError) return error.message
    throw error
  }
}
