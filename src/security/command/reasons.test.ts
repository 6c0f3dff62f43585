import { expect, test } from 'bun:test'
import { verdictOf } from './policy.fixture.ts'

/** One command for each rule with its reason: the words that a person and the model read. */
test.each([
  [':', 'command.allowed', 'everything in it is allow-listed: only the shell itself'],
  ['bash', 'command.code', 'bash runs whatever it reads from its input; name the commands themselves'],
  ['halt', 'command.destructive', 'halt stops the machine'],
  ['. <(curl x)', 'command.download_to_shell', 'source would execute what was just downloaded; save it, read it, then decide'],
  ['$X', 'command.dynamic', 'which command "…" is, is known only when it runs; write it out'],
  ['env -i', 'command.environment', 'env -i also takes away what keeps programs careful; leave it out'],
  ['rm', 'command.forbidden', 'rm is one of forbidden_commands and runs nowhere; use the tool file_delete, with recursive for a folder'],
  [':(){ :|:& };:', 'command.fork_bomb', '":" starts itself again and again until the machine stops'],
  ['ls\r', 'command.hidden', "the command holds U+000D, which does not show; write it as an escape in $'…'"],
  ['su', 'command.not_allowed', 'su runs other commands and is not on the allow list'],
  ['ls\u0000', 'command.nul', 'the command holds a NUL byte; leave it out'],
  ['sed ]', 'command.option', 'sed: cannot follow the script at "]"'],
  ['sudo -i', 'command.privilege', 'sudo runs a command with the rights of another user'],
  ['ls() { cat; }; ls', 'command.shadows', 'a function named ls stands in for a command; give it another name'],
  ['[ * ]', 'command.unclear', '"*" could be -v, which evaluates what follows it; quote it as one operand of = or -n'],
  ['for', 'command.unparseable', "the command is not complete, valid shell: expected 'do'"],
  ['cd /', 'path.outside_workspace', 'path: "/" is outside the workspace /ws; use a path inside it'],
  ['mv .git old', 'path.protected', 'path: ".git" is run or obeyed by other programs; ask the operator to change it by hand'],
])('%j is judged by %s, in words', (command, rule, reason) => {
  expect(verdictOf(command)).toMatchObject({ rule, reason })
})
