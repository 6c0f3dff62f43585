/** Reads and writes the JSON file in which a home keeps what its owner approved of other people's things, by name. */

import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { replaceFile } from '../../../kit/files.ts'
import { isObject, parseJson } from '../../../kit/json.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { FailureError } from '../../failure.ts'

type BookOptions<Entry> = Readonly<{ home: string; file: string; noun: string; isEntry: (entry: unknown) => entry is Entry }>

/** The file and its folder need not exist. `noun` is one of the things, such as `plugin`; `isEntry` checks one value of the file. */
export function openApprovedBook<Entry>({ home, file, noun, isEntry }: BookOptions<Entry>) {
  /** @throws FailureError when the file is damaged: then nothing is approved, and nothing overwrites it */
  function read(): Map<string, Entry> {
    const found = readConfigFile(file)
    if (found.state === 'missing') return new Map()
    const value = found.state === 'text' ? parseJson(found.text) : undefined
    const entries = isObject(value) ? Object.entries(value) : []
    if (isObject(value) && entries.every((each): each is [string, Entry] => isEntry(each[1]))) return new Map(entries)
    throw new FailureError('error', `${file} is damaged, so no ${noun} runs; remove the file and approve the ${noun}s again`)
  }

  /** Lets one process at a time change files of the home, because two that write at once would undo each other's change. */
  const exclusive = <T>(work: () => T): Promise<T> => createTurns(home, openLibc).take(async () => work())

  return {
    read,
    exclusive,
    change: (work: (book: Map<string, Entry>) => void): Promise<void> =>
      exclusive(() => {
        const book = read()
        work(book)
        replaceFile(file, `${JSON.stringify(Object.fromEntries(book), null, 1)}\n`)
      }),
  }
}
