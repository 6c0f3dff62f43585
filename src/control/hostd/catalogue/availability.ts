/** Tells whether an operation can run here: on this platform, with a program that exists and that no other user can change. */

import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { attempt } from '../../../kit/errors.ts'
import type { OperationRow } from '../hostd-wire.ts'
import { describeParam } from './bind.ts'
import type { Operation } from './operation.ts'
import { unsafeFolder, whyUnsafe } from './read-catalogue.ts'

export type Machine = { readonly platform: string; readonly uid: number }

/** @returns why a call would be refused; undefined when it can run */
export function whyUnavailable({ platforms, program }: Operation, { platform, uid }: Machine): string | undefined {
  if (!platforms.some((one) => one === platform)) return `it is for ${platforms.join(', ')}; this is ${platform}`
  const real = attempt(() => realpathSync(program))
  const found = real === undefined ? undefined : statSync(real, { throwIfNoEntry: false })
  if (real === undefined || !found) return `the program "${program}" does not exist`
  if (!found.isFile()) return `"${program}" is not a regular file`
  // A user who may write to a folder of the path could replace the program by another one, or by a link.
  const unsafe = whyUnsafe(found, program, uid) ?? unsafeFolder(program, uid) ?? unsafeFolder(real, uid)
  if (unsafe !== undefined) return unsafe
  return isExecutable(real) ? undefined : `"${program}" cannot be executed by us`
}

export function rowOf(operation: Operation, machine: Machine): OperationRow {
  const { op, about, platforms, risk, approval, compat, timeoutMs } = operation
  const why = whyUnavailable(operation, machine)
  const params = Object.fromEntries(Object.entries(operation.params).map(([name, param]) => [name, describeParam(param)]))
  const row = { op, about, platforms: [...platforms], risk, approval, compat: compat || undefined, params, timeout_s: timeoutMs / 1_000 }
  return why === undefined ? { ...row, available: true } : { ...row, available: false, unavailable: why }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
