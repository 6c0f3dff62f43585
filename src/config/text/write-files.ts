/** Writes the files of the configuration atomically: each is whole or as it was, also after a crash or on a full disk. */

import { chmodSync, chownSync, linkSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd } from '../../kit/errors.ts'
import { errorCode, readConfigFile } from './read-toml-file.ts'

/** Writes a draft that only its owner may read, calls `place`, which gives it its name, and removes what is left of it. */
function viaDraft<T>(draft: string, text: string, place: () => T): T {
  using _end = atEnd(() => rmSync(draft, { force: true }))
  writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true })
  return place()
}

/** Tells whether the process that wrote this draft has ended. */
function isLeftDraft(name: string): boolean {
  const [, pid] = /\.(\d+)\.tmp$/.exec(name) ?? []
  try {
    return pid !== undefined && !process.kill(Number(pid), 0)
  } catch (error) {
    return errorCode(error) === 'ESRCH'
  }
}

/** Writes a text into a file that still contains `before`; undefined: into one that is not there. @returns false when it changed meanwhile */
export function writeConfig(path: string, before: string | undefined, text: string): boolean {
  if (before !== undefined) return replaceFile(path, before, text)
  for (const name of readdirSync(dirname(path))) if (isLeftDraft(name)) rmSync(join(dirname(path), name), { force: true })
  const draft = `${path}.${process.pid}.tmp`
  try {
    viaDraft(draft, text, () => linkSync(draft, path))
    return true
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    return false
  }
}

function replaceFile(path: string, before: string, text: string): boolean {
  const real = realpathSync(path)
  const { mode, uid, gid } = statSync(real)
  const draft = `${real}.${crypto.randomUUID()}`
  return viaDraft(draft, text, () => {
    chmodSync(draft, mode & 0o777)
    if (process.getuid?.() === 0) chownSync(draft, uid, gid)
    const now = readConfigFile(path)
    if (now.state !== 'text' || now.text !== before) return false
    renameSync(draft, real)
    return true
  })
}

/** Replaces or (without a key) removes a stored key and keeps the other lines. @throws errno errors; the file is then unchanged */
export function keepKey(path: string, name: string, key?: string): void {
  const read = readConfigFile(path)
  if (read.state === 'unusable') throw new Error(`${path} ${read.why}`)
  const lines =
    read.state === 'text'
      ? read.text.split('\n')
      : ['# Keys of model providers, kept by "braidclaw login". Nobody but you may read this file.', '']
  const others = lines.filter((line) => !new RegExp(`^\\s*(export\\s+)?${name}=`).test(line))
  const own = key === undefined ? [] : [`${name}='${key}'`]
  const text = [...(others.at(-1) === '' ? others.slice(0, -1) : others), ...own, ''].join('\n')
  const draft = `${path}.${crypto.randomUUID()}`
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  viaDraft(draft, text, () => renameSync(draft, path))
}
