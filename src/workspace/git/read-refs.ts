/** Reads the references of a repository from its files, without running git. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readSmall } from './read-settings.ts'

const mostPackedBytes = 64 * 1024 * 1024
const mostFiles = 100_000

/** Object ids by full name; symbolic references are left out. @param common the folder that holds `refs` and `packed-refs` */
export function readRefs(common: string): ReadonlyMap<string, string> {
  const refs = new Map<string, string>()
  for (const line of (readSmall(join(common, 'packed-refs'), mostPackedBytes) ?? '').split('\n')) {
    const [, id, name] = /^([\da-f]{40}|[\da-f]{64}) (refs\/\S+)$/.exec(line) ?? []
    if (id !== undefined && name !== undefined) refs.set(name, id)
  }
  for (const name of filesBelow(common)) {
    const id = idIn(readSmall(join(common, name)))
    if (id !== undefined) refs.set(name, id)
  }
  return refs
}

export type Head = { readonly branch?: string; readonly id?: string }

/** @param git the folder that holds HEAD */
export function readHead(git: string, refs: ReadonlyMap<string, string>): Head {
  const text = readSmall(join(git, 'HEAD'))
  const branch = /^ref: refs\/heads\/(\S+)\s*$/.exec(text ?? '')?.[1]
  const id = branch === undefined ? idIn(text) : refs.get(`refs/heads/${branch}`)
  return { branch, id }
}

function idIn(text: string | undefined): string | undefined {
  return /^([\da-f]{40}|[\da-f]{64})\s*$/.exec(text ?? '')?.[1]
}

/** Names that a line of packed-refs could not hold are left out, and so are links. */
function filesBelow(common: string): readonly string[] {
  const found: string[] = []
  const folders = ['refs']
  for (const folder of folders) {
    if (found.length + folders.length > mostFiles) break
    for (const entry of entriesOf(join(common, folder))) {
      const name = `${folder}/${entry.name}`
      if (/[\s\p{Cc}\ufffd]/u.test(entry.name)) continue
      if (entry.isDirectory()) folders.push(name)
      else if (entry.isFile() && !name.endsWith('.lock')) found.push(name)
    }
  }
  return found
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
