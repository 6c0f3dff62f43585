/** What the pages show as typed and printed is what the program prints today. `…` stands for what is left out. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from './support/cli.ts'

const root = join(import.meta.dir, '..')
const page = (path: string) => readFileSync(join(root, path), 'utf8')

/** The fenced blocks of this language; without one, the plain ones. */
function blocks(text: string, language = ''): readonly string[] {
  return text
    .split(/^```/mu)
    .flatMap((block, at) => (at % 2 === 1 && block.startsWith(`${language}\n`) ? [block.slice(language.length + 1)] : []))
}

/** A build that another test runs at this moment keeps a file of its own in its working directory. */
const withoutBuilds = (text: string) => text.replace(/^\.\S+\.bun-build .*\n/gmu, '')

/** A block taken apart: each line that was typed, and what it printed. */
function session(block = ''): readonly { readonly typed: string; readonly printed: string }[] {
  return block
    .split(/^\$ /mu)
    .slice(1)
    .map((step) => ({ typed: step.slice(0, step.indexOf('\n')), printed: step.slice(step.indexOf('\n') + 1) }))
}

/** `…` on a line of its own is any lines, elsewhere any characters. */
function asShown(printed: string): RegExp {
  const escaped = printed.trimEnd().replace(/[\\^$.*+?()[\]{}|]/gu, '\\$&')
  return new RegExp(`^${escaped.replace(/^…$/gmu, '[^]*?').replaceAll('…', '.*')}$`, 'u')
}

test("the README's first minute", async () => {
  using at = nest()
  const steps = session(blocks(page('README.md'))[0]).filter(({ typed }) => typed.includes('npx braidclaw '))
  expect(steps.map(({ typed }) => typed.replace(/^.*npx braidclaw /u, '').split(' ')[0])).toEqual(['agent', 'policy', 'receipt'])
  for (const { typed, printed } of steps) {
    const [, command = ''] = typed.split('npx braidclaw ')
    const args = [...command.matchAll(/"([^"]*)"|(\S+)/gu)].map(([, quoted, plain]) => quoted ?? plain ?? '')
    const { code, stdout, stderr } = await at.run(args, { cwd: root })
    expect(code).toBe(0)
    expect(withoutBuilds(`${stderr}${stdout}`).trimEnd()).toMatch(asShown(printed))
  }
})

test('the page about scripted answers: its file gives the answer that it shows', async () => {
  using at = nest()
  const text = page('docs/fixtures.md')
  const path = at.file('answers.json', blocks(text, 'json')[0] ?? '')
  const [shown] = session(blocks(text)[0])
  expect(shown?.typed).toContain('agent -m "list files"')
  const cwd = join(at.file('project/notes.md', 'hello\n'), '..')
  const { code, stdout, stderr } = await at.run(['agent', '-m', 'list files'], { cwd, env: { BRAIDCLAW_MOCK_FIXTURE: path } })
  expect([code, `${stderr}${stdout}`]).toEqual([0, shown?.printed ?? ''])
})
