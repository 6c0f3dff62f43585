/** Tests when a text is read again; src/host/transactions/change-rules.test.ts does so with real files. */

import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFactCache } from './fact-cache.ts'

function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-facts-'))
  const file = join(folder, 'kept', 'facts.json')
  /** Reads twenty files as a process of its own does. @returns how many texts it read */
  const read = (stampOf = (at: number) => `stamp ${at}`) => {
    const cache = createFactCache(file)
    let texts = 0
    const specifiers = Array.from({ length: 20 }, (_, at) => {
      const text = () => {
        texts += 1
        return `import './${at}'`
      }
      return cache.of(`a${at}.ts`, stampOf(at), text).imports[0]?.specifier
    })
    expect(specifiers).toEqual(Array.from({ length: 20 }, (_, at) => `./${at}`))
    cache.save()
    return texts
  }
  return { file, read, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

test('a text is read again when its file has another stamp', () => {
  using at = stage()
  expect([at.read(), at.read(), at.read((file) => (file < 3 ? 'new' : `stamp ${file}`))]).toEqual([20, 0, 3])
})

test.each(['', '{', '[]', '{"version":1,"files":[["a1.ts",{"stamp":"stamp 1"}]]}'])('a damaged file counts as empty: %s', (text) => {
  using at = stage()
  at.read()
  writeFileSync(at.file, text)
  expect([at.read(), at.read()]).toEqual([20, 0])
})

test('what another version of the program kept is read again', () => {
  using at = stage()
  at.read()
  writeFileSync(at.file, readFileSync(at.file, 'utf8').replace('"version":1', '"version":0'))
  expect([at.read(), at.read()]).toEqual([20, 0])
})

test('without a stamp a text is always read, and with few texts no file is written', () => {
  using at = stage()
  const cache = createFactCache(at.file)
  const texts = ['import "./a"', 'import "./b"']
  const specifiers = () => cache.of('x.ts', undefined, () => texts.shift()).imports.map(({ specifier }) => specifier)
  expect([specifiers(), specifiers()]).toEqual([['./a'], ['./b']])
  cache.of('y.ts', 'stamp', () => '')
  cache.save()
  expect(existsSync(at.file)).toBe(false)
})
