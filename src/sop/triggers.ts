/**
 * Decides whether a procedure may begin by itself: only the version that a person enabled, and only from a folder that no agent writes or that
 * is trusted. Its schedules stand in the table of schedules.
 */

import { dirname, join } from 'node:path'
import { createTrust } from '../config/trust.ts'
import type { Host, Setup } from '../host/api.ts'
import type { SopRecords } from '../host/contract/records-api.ts'
import type { Schedules } from '../host/contract/schedules-api.ts'
import { FailureError } from '../host/failure.ts'
import { visible } from '../kit/text.ts'
import { findSop, findSops, type SopFile, sopTools } from './find-sops.ts'
import type { Trigger } from './sop-file.ts'

/** Says for each state but `enabled` why nothing begins the procedure by itself. */
const reasons = {
  none: 'has no triggers; add [[triggers]] (docs/sop.md)',
  off: 'was not enabled by a person; read it, then run: braidclaw sop enable',
  changed: 'has changed since it was enabled, so its triggers have stopped; read it, then run: braidclaw sop enable',
  untrusted: 'is in a folder that is not trusted, so nothing begins it by itself; run: braidclaw trust',
} as const

type TriggerState = keyof typeof reasons | 'enabled'
type TriggerContext = { readonly setup: Pick<Setup, 'paths'>; readonly sops: Pick<SopRecords, 'enabled'> }

export function triggerState({ setup: { paths }, sops }: TriggerContext, { path, digest, sop }: SopFile): TriggerState {
  if (sop.triggers.length === 0) return 'none'
  const isOfHome = dirname(dirname(path)) === join(paths.home, 'sops')
  if (!isOfHome && !createTrust(paths.trustedFolders).isTrusted(dirname(path))) return 'untrusted'
  const enabled = sops.enabled(path)
  return enabled.includes(digest) ? 'enabled' : enabled.length > 0 ? 'changed' : 'off'
}

export function triggerText({ schedule, zone = 'your time zone', message, webhook, input, channel, to }: Trigger): string {
  const rest = input === undefined ? '' : `; the input ${input} gets the rest`
  if (message !== undefined) return `the message ${JSON.stringify(message)}${rest}`
  if (webhook !== undefined) return `a request with the token ${JSON.stringify(webhook)}${rest}`
  return `cron ${schedule}, ${zone}${channel === undefined ? '' : `; answer to ${channel} ${to}`}`
}

/** The message of the schedules that triggers make. It begins only what is enabled, whoever writes it. */
export const triggerCommand = '/sop-trigger'

type Enabling = { readonly schedules: Schedules; readonly sops: Pick<SopRecords, 'enable'> }

/** Lets this version begin by itself, or with `off` no version. @throws FailureError for a file that cannot be enabled */
export function enableSop({ schedules, sops }: Enabling, { name, path, digest, sop }: SopFile, by: string, off = false) {
  const before = schedules.list().filter(({ message }) => message === `${triggerCommand} ${name}`)
  for (const { id } of before) schedules.remove(id)
  sops.enable(path, off ? undefined : digest, by)
  for (const [number, { schedule, zone, channel, to }] of off ? [] : sop.triggers.entries())
    if (schedule !== undefined)
      schedules.add({
        name: `sop-${name}-${number + 1}`,
        message: `${triggerCommand} ${name}`,
        timing: { cron: schedule },
        zone,
        channel,
        to,
      })
}

/** @throws FailureError `usage` that says why nothing begins the procedure by itself */
export function assertEnabled(at: TriggerContext, file: SopFile, others: readonly TriggerState[] = []): void {
  const state = triggerState(at, file)
  if (state === 'enabled' || others.includes(state)) return
  const name = reasons[state].endsWith('enable') ? ` ${file.name}` : ''
  throw new FailureError('usage', `the procedure ${file.name} ${reasons[state]}${name} (${visible(file.path)})`)
}

/** Finds the procedure that has a trigger of this kind, which is enabled. @throws FailureError `usage` */
export async function enabledSop({ setup, records }: Host, name: string, fits: (trigger: Trigger) => boolean): Promise<[SopFile, Trigger]> {
  const file = await findSop(setup, await sopTools(setup), name)
  assertEnabled({ setup, sops: (await records()).sops }, file)
  const trigger = file.sop.triggers.find(fits)
  if (trigger) return [file, trigger]
  throw new FailureError('usage', `the procedure ${name} has no such trigger (${visible(file.path)})`)
}

/** Returns the name of a procedure with a version that a person enabled, which a message begins, and the input that the message has. */
export async function namedByMessage(text: string, { setup, records }: Host) {
  const { sops } = await records()
  if (sops.enabled().length === 0) return undefined
  const message = text.trim()
  for (const file of await findSops(setup, new Map()))
    for (const { message: begins = '', input } of sops.enabled(file.path).length > 0 ? file.sop.triggers : []) {
      const rest = message.slice(begins.length)
      const fits = begins !== '' && message.startsWith(begins) && (rest === '' || (input !== undefined && /^\s/.test(rest)))
      if (fits) return { name: file.name, inputs: input === undefined ? {} : { [input]: rest.trim() } }
    }
}
