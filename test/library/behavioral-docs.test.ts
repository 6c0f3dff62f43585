/** The section of docs/library.md about behavioral programs, as it stands there: on Node and Bun, and through the executable. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const root = join(import.meta.dir, '../..')
const [, section = ''] = readFileSync(join(root, 'docs/library.md'), 'utf8').split('## Behavioral programs\n')
const [page = ''] = section.split(/\n## /)
const blocks = [...page.matchAll(/```(\w*)\n(.*?)```/gs)].map(([, kind = '', text = '']) => ({ kind, text }))
const programs = blocks.filter(({ kind, text }) => kind === 'ts' && text.includes("'braidclaw/behavioral'"))

/** One file for Node, as the package will have it. */
async function bundled(dir: string, source: string): Promise<string> {
  const entry = join(dir, 'program.ts')
  await Bun.write(entry, source.replaceAll("'braidclaw/behavioral'", JSON.stringify(join(root, 'src/library/behavioral.ts'))))
  const built = await Bun.build({ entrypoints: [entry], target: 'node', outdir: dir, naming: 'program.mjs' })
  expect(built.logs).toEqual([])
  return join(dir, 'program.mjs')
}

test('the page has three programs, each with what it prints', () => {
  expect(programs).toHaveLength(3)
})

for (const [at, { text }] of programs.entries())
  test.if(needs('node'))(`program ${at + 1} prints what the page says, on Node and on Bun`, async () => {
    using place = nest()
    const file = await bundled(place.dir, text)
    const expected = blocks[blocks.findIndex((block) => block.text === text) + 1]?.text ?? 'nothing'
    expect(readFileSync(file, 'utf8')).not.toMatch(/\bBun\.|bun:|require\(/)
    for (const runtime of ['node', process.execPath]) {
      const child = Bun.spawn([runtime, file], { stdout: 'pipe', stderr: 'inherit', env: { NO_COLOR: '1', PATH: process.env.PATH } })
      expect([await child.stdout.text(), await child.exited]).toEqual([expected, 0])
    }
  })

test.if(needs('bwrap'))('the commands print what the page says', async () => {
  using place = nest()
  place.file('loop.ts', blocks.find(({ text }) => text.includes('export default'))?.text ?? '')
  const shown = blocks.find(({ kind }) => kind === 'console')?.text ?? ''
  for (const [, line = '', output] of shown.matchAll(/^\$ braidclaw (.*)\n((?:(?!\$ ).*\n)*)/gm)) {
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
    expect(await place.run(words)).toEqual({ code: 0, stdout: output ?? '', stderr: '' })
  }
})
