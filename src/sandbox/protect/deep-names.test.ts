import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { confined } from '../fixture.ts'

test.if(needs('bwrap', 'git'))(
  'protected names that a command makes or changes at any depth are named, those that were there are not',
  async () => {
    using box = await confined()
    const deep = join(box.workspace, 'a/b/c/d/e')
    mkdirSync(join(deep, '.vscode'), { recursive: true })
    for (const name of ['.npmrc', '.vscode/tasks.json', 'plain']) writeFileSync(join(deep, name), '')
    Bun.spawnSync(['git', 'init', '-q', join(deep, 'old')])
    await Bun.sleep(30)
    const script =
      'cd a/b/c/d/e; echo x > .envrc; echo x > .npmrc; echo x >> .vscode/tasks.json; echo x > plain; git init -q new; cd old; git config core.fsmonitor x; git add .'
    const { ended } = await box.run(script)
    const [said = ''] = ended.ok ? (ended.undone ?? []) : []
    expect(said).toContain('look at it first')
    expect(
      said
        .match(/"[^"]+"/g)
        ?.map((name) => name.slice(1, -1).replace('a/b/c/d/e/', ''))
        .toSorted(),
    ).toEqual(['.envrc', '.npmrc', '.vscode/tasks.json', 'new/.git', 'old/.git/config'])
    expect((await box.run('echo more >> a/b/c/d/e/plain; cat a/b/c/d/e/.envrc')).ended).toMatchObject({ ok: true, mode: 'direct' })
    expect((await box.run(':')).ended).not.toHaveProperty('undone')
  },
)
