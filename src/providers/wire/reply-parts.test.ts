import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ModelChunk } from '../../runtime/port.ts'
import { collectParts } from './reply-parts.ts'

const text = (chunk: ModelChunk | undefined) => (chunk?.type === 'text' ? chunk.text : undefined)
const collect = (maxBytes = 1_000) => collectParts({ provider: 'p', maxBytes, newId: (id) => id })

test('half a surrogate pair waits for the other half, and is replaced when that never comes', () => {
  const collection = collect()
  const block = collection.begin('text')
  const shown = ['a\ud83d', '\ude42', '\ud83d', 'b', '\ud83d'].map((delta) => text(collection.add(block, delta)))
  expect(shown).toEqual(['a', '🙂', undefined, '\ufffdb', undefined])
  expect(collection.parts()).toEqual([{ type: 'text', text: 'a🙂\ufffdb\ufffd' }])
})

test('a byte over the limit is too large, whether it is said or written', () => {
  const collection = collect(4)
  collection.add(collection.begin('text'), 'é')
  collection.count('ab')
  expect(collection.bytes()).toBe(4)
  expect(() => collection.count('c')).toThrow('max_response_bytes = 4')
})

test('a block in which nothing was said is no part, unless it has something to give back', () => {
  const collection = collect()
  collection.begin('text')
  collection.begin('thinking').meta = { v: { sealed: 'x' } }
  expect(collection.parts()).toEqual([{ type: 'thinking', text: '', meta: { v: { sealed: 'x' } } }])
})

test('however a text is cut, it is the same text, whole characters at a time', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary-ascii' }).chain((each) => fc.constantFrom(each, '🙂', '\ud83d', '\ude42'))),
      (deltas) => {
        const collection = collect(100_000)
        const block = collection.begin('text')
        const shown = deltas.map((delta) => text(collection.add(block, delta)) ?? '')
        expect(shown.every((each) => each.isWellFormed())).toBe(true)
        expect(
          collection
            .parts()
            .flatMap((part) => (part.type === 'text' ? [part.text] : []))
            .join(''),
        ).toBe(deltas.join('').toWellFormed())
      },
    ),
  )
})
