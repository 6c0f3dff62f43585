/** Hooks of plugins: those of an approved one run from its private copy; a changed plugin loses them, and that is said. */

import { expect, test } from 'bun:test'
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { making, results, stage } from '../../../../../test/support/hooks.ts'
import { needs } from '../../../../../test/support/needs.ts'
import { readManifest } from '../plugins/manifest.ts'
import { openPlugins } from '../plugins/plugins.ts'

const manifest = (hooks: string, files = 'read') =>
  `name = "guard"\nversion = "1.0.0"\ncapabilities = ["hook"]\n${hooks}\n[permissions]\nfiles = "${files}"\n`
const beforeShell = '[[hooks]]\nevent = "before_tool"\ncommand = "./check"\nmatch = "file_*"'

function plant(home: string, text: string): string {
  const folder = join(home, 'plugins/guard')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'manifest.toml'), text)
  const program = '#!/bin/sh\ncat > /dev/null\nprintf \'{"verdict":"veto","reason":"%s"}\' "$(cat "$BRAIDCLAW_HOOK_DIR/why")"\n'
  writeFileSync(join(folder, 'check'), program)
  chmodSync(join(folder, 'check'), 0o755)
  writeFileSync(join(folder, 'why'), 'the plugin says no')
  return folder
}

const write = (path: string) => making(['file_write', { path, content: 'x' }])

test.if(needs('bwrap'))('only an approved plugin has hooks; a changed one loses them with a notice', async () => {
  await using on = await stage({})
  const folder = plant(on.home, manifest(beforeShell))
  expect((await results(await on.begin(write('a.txt'))))[0]).not.toContain('hook')
  const plugins = openPlugins(on.home)
  await plugins.approve('guard', plugins.sound('guard').files.digest)
  expect(await results(await on.begin(write('b.txt')))).toEqual(['Denied by hook.plugin.guard: the plugin says no'])
  expect(await results(await on.begin(making(['time', {}])))).not.toEqual([expect.stringContaining('Denied')])
  appendFileSync(join(folder, 'why'), '!')
  expect((await results(await on.begin(write('c.txt'))))[0]).not.toContain('hook')
  expect(on.lines.join('')).toContain('no hook of the plugin guard runs: its files changed after they were approved')
})

test.if(needs('bwrap'))('an unknown event of an approved plugin ends the turn before it begins, with its name', async () => {
  await using on = await stage({})
  plant(on.home, manifest(beforeShell.replace('before_tool', 'before_tols')))
  const plugins = openPlugins(on.home)
  await plugins.approve('guard', plugins.sound('guard').files.digest)
  await expect(on.begin(write('a.txt'))).rejects.toThrow('"before_tols"')
})

test('a plugin with hooks says that it reads the workspace', () => {
  const read = readManifest(manifest(beforeShell, 'none'))
  expect(read).toMatchObject({ ok: false, problems: [expect.stringContaining('because a hook runs in the workspace')] })
})
