export async function mount(main, page) { main.append(page.el('h1', {}, 'health')); return {}; }
