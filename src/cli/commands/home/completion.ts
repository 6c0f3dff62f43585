/** Implements `completion bash | zsh | fish`: it prints a script that calls back for candidates. */

import { command } from '../../args/command.ts'
import { usageError } from '../../exit.ts'

const scripts: Readonly<Record<string, string>> = {
  bash: `_braidclaw() {
  local IFS=$'\\n'
  COMPREPLY=( $(COMP_LINE="\${COMP_LINE:0:COMP_POINT}" braidclaw __complete bash "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
}
complete -o default -F _braidclaw braidclaw
`,
  zsh: `#compdef braidclaw
_braidclaw() {
  local -a found
  found=("\${(@f)$(braidclaw __complete zsh "\${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}")
  _describe 'braidclaw' found
}
if [[ "\${funcstack[1]}" = _braidclaw ]]; then _braidclaw "$@"; else compdef _braidclaw braidclaw; fi
`,
  fish: `complete -c braidclaw -f -a '(braidclaw __complete fish (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

export const completion = command({
  args: { shell: { type: 'choice', values: ['bash', 'zsh', 'fish'], about: 'bash, zsh or fish' } },
  examples: [['bash > ~/.local/share/bash-completion/completions/braidclaw', 'for bash']],
  run(context, _, { shell }) {
    const script = scripts[shell]
    if (script === undefined) throw usageError(`no completions for "${shell}"; there are: ${Object.keys(scripts).join(', ')}`)
    context.process.stdout.write(script)
  },
})
