/** Does what docs/plugins.md says: the page's own files and commands make plugins that work. */

import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writePlugin } from '../../src/host/toolset/guests/plugins/plugin.fixture.ts'
import { executable, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/plugins.md'), 'utf8')

/** Returns the first block of this language after the heading. */
function blockAfter(heading: string, language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page.slice(page.indexOf(heading))) ?? []
  if (text === undefined) throw new Error(`docs/plugins.md has no ${language} after "${heading}"`)
  return text
}

test.if(needs('python3'))('a plugin in Python: each file and each command of the page', async () => {
  using at = nest()
  at.config('\n')
  const heading = '### A plugin in Python'
  for (const [path, language] of [
    ['words/manifest.toml', 'toml'],
    ['words/words.py', 'python'],
  ] as const) {
    const text = blockAfter(heading, language)
    expect(text).toContain(`# ${path}\n`)
    mkdirSync(join(at.workspace, dirname(path)), { recursive: true })
    writeFileSync(join(at.workspace, path), text)
  }
  const sandbox = needs('bwrap') ? '' : ' --sandbox none'
  const script = blockAfter(heading, 'sh').replaceAll('tool run words', `tool run words${sandbox}`)
  const shell = Bun.spawn(['sh', '-c', `braidclaw() { "${executable}" "$@"; }\n${script}`], {
    cwd: at.workspace,
    env: at.env,
    stdin: 'ignore',
    stderr: 'pipe',
    stdout: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  expect(stdout).toEndWith('approved: words\n3 words\n')
  expect(stderr).toMatch(/^error: words: .*No such file or directory/m)
})

test.if(needs('python3', 'bwrap'))('the provider of the page answers', async () => {
  using at = nest()
  const heading = '## A provider'
  at.config(blockAfter(heading, 'toml'))
  const folder = writePlugin(join(at.dir, 'my-model'), 'my-model', 'provider', blockAfter(heading, 'python'))
  expect((await at.run(['plugin', 'install', folder, '--yes'])).code).toBe(0)
  expect((await at.run(['agent', '-m', 'good morning'])).stdout).toContain('You said: good morning')
})
