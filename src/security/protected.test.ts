import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { folded, isProtectedName } from './protected.ts'

/** What folding does to one name, spelled out. */
function foldedName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}

test('the short way for ordinary paths folds as the long one does', () => {
  const path = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.stringMatching(/^[a-zA-Z./ ~_-]*$/))
  fc.assert(
    fc.property(path, (text) => folded(text) === text.split('/').map(foldedName).join('/')),
    { numRuns: 5000 },
  )
})

test.each([
  ['/A/.GIT/Hooks', '/a/.git/hooks'],
  ['/a/.git./x', '/a/.git/x'],
  ['/a/.git /x', '/a/.git/x'],
  ['/a/.g\u200cit', '/a/.git'],
  ['/a/ｇit', '/a/git'],
  ['/a/../b', '/a/../b'],
])('%s folds to %s', (path, expected) => {
  expect(folded(path)).toBe(expected)
})

const everywhere =
  `.gitmodules .gitconfig .config/git .braidclaw .mcp.json .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
  .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .envrc .screenrc .tmux.conf .config/fish
  .config/tmux .config/powershell .xinitrc .xsession .xprofile .pam_environment .config/autostart .config/environment.d .config/systemd
  .local/share/systemd Library/LaunchAgents Library/LaunchDaemons .ssh .gnupg .netrc .vscode .vscode-server .idea .vs .zed .fleet .devcontainer
  .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el`.split(/\s+/)

test.each(everywhere)('%s is protected wherever it lies, with all below it, and not what is only named alike', (name) => {
  for (const path of [name, `/a/${name}`, `a/${name}/b`, name.toUpperCase()]) expect(isProtectedName(path)).toBe(true)
  for (const path of [`${name}x`, `x${name}`, `a/x${name}/b`]) expect(isProtectedName(path)).toBe(false)
})

test('all of a .git, however git or a file system would spell it', () => {
  for (const path of ['.git', 'a/.git', '.git/HEAD', '.git/objects/x', 'hooks/.git/refs', '//a//.git//index'])
    expect(isProtectedName(path)).toBe(true)
  for (const name of [
    '.GIT',
    '.git.',
    '.git ',
    '.git . .',
    '.g\u200cit',
    '.gi\ufefft',
    '.git:x',
    '.git::$INDEX_ALLOCATION',
    '.git. :x',
    'git~1',
    'GIT~1',
  ])
    for (const path of [name, `${name}/config`, `a/${name}/HEAD`, `a\\${name}\\HEAD`])
      expect([path, isProtectedName(path)]).toEqual([path, true])
  for (const name of ['gitmod~1', 'GI7EBA~1', '.gitmodules:x']) expect(isProtectedName(name)).toBe(true)
  for (const path of ['hooks', 'git', 'x.git/HEAD', '.github/x', '.gitignore', 'git~2', 'a:.git', 'a~1', ':git'])
    expect([path, isProtectedName(path)]).toEqual([path, false])
})

test('folding leaves no slash that was not there, and drops what cannot be seen', () => {
  expect(folded('A/B')).toBe('a/b')
  expect(folded('a\u200cb/\uff0f c')).toBe('ab/ c')
  expect([folded('x./y'), folded('x. /y'), folded('..'), folded('...')]).toEqual(['x/y', 'x/y', '..', '...'])
})
