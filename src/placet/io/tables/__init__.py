"""What readers of tables share: rows of any source, named columns, cells, controls, layouts, slices."""
