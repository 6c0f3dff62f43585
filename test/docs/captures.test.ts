/** The pictures of screens in the docs: the script that makes them plays its scenes, and each picture is used by a page. */

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileOf, play, type Scene, scenes, sizes } from '../../scripts/captures.ts'
import { type Size, terminalSvg } from '../../scripts/terminal-svg.ts'
import { needs } from '../support/needs.ts'

const docs = join(import.meta.dir, '../../docs')
const size = { columns: 80, rows: 24 }
const picture = (screen: string, at: Size = size) => terminalSvg(screen, at, 'a screen')
const scene = (name: string) => scenes.find((each) => each.name === name) as Scene
/** Returns the texts of a picture, a line each. */
const textIn = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text).join('\n')

describe('the script', () => {
  test.if(needs('tmux'))('plays a question with a tool and its answer', async () => {
    const text = textIn(picture(await play(scene('answer'), size)))
    for (const words of ['What does this project do?', 'notes.md', 'It prints']) expect(text).toContain(words)
    expect(text).not.toContain('/p-')
  })

  test.if(needs('tmux'))('plays a question that waits for a yes, at the other size', async () => {
    const [, wide = size] = sizes
    const svg = picture(await play(scene('approval'), wide), wide)
    expect(textIn(svg)).toContain('throw new Error("no readings")')
    expect(svg).toContain('[y/N')
  })

  test.if(needs('tmux'))('says what a screen shows that it did not expect', async () => {
    const wrong: Scene = { name: 'wrong', words: ['--nope'], steps: [{ shows: /never/, withinMs: 500 }] }
    expect(play(wrong, size)).rejects.toThrow(/wrong at 80x24: the screen does not show \/never\/:\n.*no flag "--nope"/s)
  })
})

describe('a picture of a screen', () => {
  test('has colours, weights and places', () => {
    const svg = picture('a \x1b[1;31mred\x1b[0m\x1b[38;5;208mx\x1b[39m\x1b[48;2;1;2;3m \x1b[0m\n\x1b[2mdim')
    expect(svg).toContain('<text x="28.8" y="26" textLength="25.2" xml:space="preserve" fill="#e06c75" font-weight="bold">red</text>')
    expect(svg).toContain('fill="rgb(255,135,0)">x</text>')
    expect(svg).toContain('fill="rgb(1,2,3)"/>')
    expect(svg).toContain('y="44" textLength="25.2" xml:space="preserve" fill="#d6d8de" opacity="0.6">dim</text>')
  })

  test('holds text as text, whatever it is, and two columns for a wide character', () => {
    const svg = picture('<script>&\x07</script>\n日本\x1b[4mx')
    expect(textIn(svg)).toBe('&lt;script&gt;&amp;\n&lt;/script&gt;\n日本\nx')
    expect(svg).toContain('<text x="45.6" y="44"')
    expect(svg).not.toContain('\x07')
  })

  test('has no more rows than the screen', () => {
    expect(textIn(picture('x\n'.repeat(100))).split('\n')).toHaveLength(24)
  })
})

test('docs/captures has the picture of each scene at each size, and no other', () => {
  const expected = scenes.flatMap(({ name }) => sizes.map((each) => fileOf(name, each)))
  expect(readdirSync(join(docs, 'captures')).toSorted()).toEqual(expected.toSorted())
})

test('each scene is shown by a page', () => {
  const text = readdirSync(docs)
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(join(docs, name), 'utf8'))
    .join('\n')
  expect(scenes.filter(({ name }) => !text.includes(`](captures/${name}-`)).map(({ name }) => name)).toEqual([])
})
