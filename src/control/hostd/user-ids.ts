/** Finds the number of a user or group by its name in the files of the system. */

import { readFileSync } from 'node:fs'

export type FoundId = { readonly ok: true; readonly id: number } | { readonly ok: false; readonly message: string }

/** A number is taken as it is; users of a directory service are named by number. */
export function idOf(kind: 'user' | 'group', name: string, read = readText): FoundId {
  if (/^\d{1,9}$/.test(name)) return { ok: true, id: Number(name) }
  const file = kind === 'user' ? '/etc/passwd' : '/etc/group'
  // An empty field is not 0, which would be root.
  const fields = read(file)
    .split('\n')
    .map((line) => line.split(':'))
    .find(([first]) => first === name)
  const id = fields?.[2] ?? ''
  if (/^\d{1,10}$/.test(id)) return { ok: true, id: Number(id) }
  return { ok: false, message: `there is no ${kind} "${name}" in ${file}; create it, or give its number` }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8')
}
